// Leaf communications on fat trees (002), by the verifier. By default a sample of the trees; all of
// them with ESPALIER_WHOLE=1.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "collectives/verify/verify.h"
#include "tests/fat_tree/grid.h"
#include "tests/fat_tree/leaf_replay.h"

namespace espalier {
namespace {

using leaf_replay::Tree;

std::int64_t most_blocks(const Algorithm& algorithm, std::uint32_t ranks) {
  if (algorithm.collective != espalier_Collective_ALL_TO_ALL) {
    return ranks <= 16 ? 7 : ranks <= 64 ? 3 : 2;
  }
  return ranks <= 16 ? 3 : 1;
}

void verify_on(const Algorithm& algorithm, const Tree& tree, const std::set<std::uint32_t>& roots) {
  std::string error;
  const auto topology = topology::parse(leaf_replay::spec(tree), error);
  ASSERT_NE(topology, nullptr) << error;
  for (const std::uint32_t root : roots) {
    Group group = leaf_replay::group_of(tree, root);
    group.topology_digest = topology->digest();
    const leaf_replay::Schedule schedule = leaf_replay::generate(algorithm, group);
    ASSERT_EQ(schedule.error, "");
    const auto program = [&](std::uint32_t node) -> const Program& {
      return schedule.programs[node];
    };
    verify::Options options;
    options.max_blocks = most_blocks(algorithm, group.ranks);
    const verify::Verdict verdict = verify::verify(*topology, program, options);
    ASSERT_TRUE(verdict.valid) << collective_name(algorithm.collective) << ' ' << algorithm.name
                               << ' ' << topology->spec() << " root " << root << ": "
                               << verdict.counterexample.message;
    EXPECT_TRUE(verdict.async);
    EXPECT_GT(verdict.instances, 0u);
  }
}

TEST(Leaf, IsVerified) {
  for (const Tree& tree : leaf_replay::trees(leaf_replay::whole() ? 256 : 64)) {
    const auto ranks = static_cast<std::uint32_t>(leaf_replay::power(tree.arity, tree.height));
    for (const Algorithm& algorithm : leaf_replay::leaf_algorithms()) {
      std::set<std::uint32_t> roots = {0};
      if (leaf_replay::is_rooted(algorithm)) roots.insert({1, ranks - 1});
      verify_on(algorithm, tree, roots);
    }
  }
}

TEST(Leaf, TotalExchangeIsVerifiedForAnyCapacities) {
  const Algorithm* algorithm = find_algorithm(espalier_Collective_ALL_TO_ALL, "leaf");
  ASSERT_NE(algorithm, nullptr);
  for (const Tree& constant : leaf_replay::trees(leaf_replay::whole() ? 64 : 27)) {
    const std::vector<Tree> all = leaf_replay::with_capacities(constant);
    const std::size_t stride = std::max<std::size_t>(1, all.size() / 8);
    for (std::size_t at = (all.size() - 1) % stride; at < all.size(); at += stride) {
      verify_on(*algorithm, all[at], {0});
    }
  }
}

}  // namespace
}  // namespace espalier

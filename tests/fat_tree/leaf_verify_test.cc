// Leaf communications on fat trees (002), by the verifier. By default a sample of the trees; all of
// them with ESPALIER_WHOLE=1.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "collectives/verify/verify.h"
#include "tests/fat_tree/grid.h"
#include "tests/fat_tree/leaf_replay.h"

namespace espalier {
namespace {

using leaf_replay::Tree;

TEST(Leaf, IsVerified) {
  for (const Tree& tree : leaf_replay::trees(leaf_replay::whole() ? 256 : 64)) {
    std::string error;
    const auto topology = topology::parse(leaf_replay::spec(tree), error);
    ASSERT_NE(topology, nullptr) << error;
    for (const Algorithm& algorithm : leaf_replay::leaf_algorithms()) {
      for (const std::uint32_t root : {0u, 1u, topology->ranks() - 1}) {
        if (!leaf_replay::is_rooted(algorithm) && root != 0) continue;
        Group group = leaf_replay::group_of(tree, root);
        group.topology_digest = topology->digest();
        const leaf_replay::Schedule schedule = leaf_replay::generate(algorithm, group);
        ASSERT_EQ(schedule.error, "");
        const auto program = [&](std::uint32_t node) -> const Program& {
          return schedule.programs[node];
        };
        verify::Options options;
        options.max_blocks = topology->ranks() <= 16 ? 7 : topology->ranks() <= 64 ? 3 : 2;
        const verify::Verdict verdict = verify::verify(*topology, program, options);
        ASSERT_TRUE(verdict.valid)
            << collective_name(algorithm.collective) << ' ' << algorithm.name << ' '
            << topology->spec() << " root " << root << ": " << verdict.counterexample.message;
        EXPECT_TRUE(verdict.async);
      }
    }
  }
}

}  // namespace
}  // namespace espalier

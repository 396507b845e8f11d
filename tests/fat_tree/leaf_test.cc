// Leaf communications on fat trees (002): step counts, and every step replayed. By default a sample
// of the trees; all of them with ESPALIER_WHOLE=1.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/fat_tree/grid.h"
#include "tests/fat_tree/leaf_replay.h"

namespace espalier {
namespace {

using leaf_replay::is_rooted;
using leaf_replay::leaf_algorithms;
using leaf_replay::power;
using leaf_replay::Tree;
using leaf_replay::trees;
using leaf_replay::whole;

// The steps of golden.json and algorithms.md section 1.3, for N blocks.
std::int64_t documented(const Algorithm& algorithm, const Tree& tree, std::int64_t blocks) {
  const std::int64_t k = tree.arity, h = tree.height, n = power(k, tree.height);
  const std::string name = algorithm.name;
  const std::int64_t late = k == 2 && n > 2 ? 1 : 0;
  switch (algorithm.collective) {
    case espalier_Collective_BROADCAST:
      return name == "leaf" ? (k + 1) * h - 1 + k * (blocks - 1) : 2 * h + blocks - 1;
    case espalier_Collective_ALLGATHER: return (n - 1 + late) * blocks + 1;
    default: return (n - 1) * blocks + 1 + late;
  }
}

TEST(Leaf, ReplaysInTheDocumentedSteps) {
  int replays = 0;
  for (const Tree& tree : trees(whole() ? 256 : 64)) {
    std::string error;
    const auto topology = topology::parse(leaf_replay::spec(tree), error);
    ASSERT_NE(topology, nullptr) << error;
    const std::uint32_t n = topology->ranks();
    std::set<std::uint32_t> roots{0, 1, n - 1};
    for (std::uint32_t root = 0; root < n && n <= 27; ++root) roots.insert(root);
    for (const Algorithm& algorithm : leaf_algorithms()) {
      for (const std::uint32_t root : roots) {
        if (!is_rooted(algorithm) && root != 0) continue;
        for (const std::uint32_t window : {1u, 8u}) {
          if (window == 1 && root > 1) continue;
          Group group = leaf_replay::group_of(tree, root);
          group.window = window;
          const leaf_replay::Schedule schedule = leaf_replay::generate(algorithm, group);
          ASSERT_EQ(schedule.error, "");
          for (const std::int64_t blocks : {1, 2, 3, 7, 20}) {
            if (blocks > 3 && n > 64 && root != 1) continue;
            const auto result = leaf_replay::run(schedule, *topology, blocks);
            ASSERT_EQ(result.error, "");
            ASSERT_EQ(result.steps, documented(algorithm, tree, blocks)) << topology->spec();
            const bool queued = std::string(algorithm.name) == "leaf" &&
                                algorithm.collective == espalier_Collective_BROADCAST;
            ASSERT_LE(result.held, queued ? tree.arity : 1) << topology->spec();
            ++replays;
          }
        }
      }
    }
  }
  EXPECT_GT(replays, 1000);
}

TEST(Leaf, DescriptorsAreSmall) {
  std::vector<std::uint8_t> bytes(kMaxDescriptorBytes);
  for (const Tree& tree : std::vector<Tree>{{2, 4, {}}, {4, 2, {}}, {4, 3, {}}, {5, 3, {}}}) {
    Group group = leaf_replay::group_of(tree, 1);
    group.topology_digest = ~0ull;
    group.window = 16;
    for (const Algorithm& algorithm : leaf_algorithms()) {
      std::size_t longest[2] = {};
      for (std::uint32_t node = 0; node < algorithm_nodes(algorithm, group); ++node) {
        Program program;
        ASSERT_EQ(algorithm.generate(group, node, program), Status::kOk);
        std::size_t written = 0;
        ASSERT_EQ(encode_program(program, bytes.data(), bytes.size(), written), Status::kOk);
        std::size_t& most = longest[node < group.ranks ? 0 : 1];
        most = std::max(most, written);
      }
      std::printf("%s %s k %u h %u: a rank at most %zu bytes, a router %zu\n",
                  collective_name(algorithm.collective), algorithm.name, tree.arity, tree.height,
                  longest[0], longest[1]);
      EXPECT_LE(longest[0], 700u);
      EXPECT_LE(longest[1], 1600u);
    }
  }
}

TEST(Leaf, RefusesOtherGroups) {
  for (const Algorithm& algorithm : leaf_algorithms()) {
    Program program;
    EXPECT_EQ(algorithm.generate({.ranks = 16}, 0, program), Status::kUnsupported);
    EXPECT_EQ(algorithm.generate({.ranks = 16, .arity = 3, .height = 2}, 0, program),
              Status::kUnsupported);
    const Group group{.ranks = 16, .arity = 4, .height = 2};
    EXPECT_EQ(algorithm.generate(group, 20, program), Status::kOk);
    EXPECT_EQ(algorithm.generate(group, 21, program), Status::kBadArgument);
  }
}

}  // namespace
}  // namespace espalier

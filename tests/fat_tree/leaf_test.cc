// Leaf communications on fat trees [DD96]: step counts, and every step replayed. By default a
// sample of the trees; all of them with ESPALIER_WHOLE=1.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/algorithms/trees/leaf_tree.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "tests/algorithms/replay.h"
#include "tests/fat_tree/trees.h"

namespace espalier {
namespace {

using fat_trees::all_trees;
using fat_trees::arity;
using fat_trees::is_rooted;
using fat_trees::leaf_algorithms;
using fat_trees::leaves;
using fat_trees::power;
using fat_trees::Tree;
using fat_trees::trees;

// The slots of a block: formula (2) of [DD96] without its last terms, for lanes that can be filled
// in multiples of `unit`. A node takes at most 64 messages of a link in a step, and 255 in all.
std::int64_t total_exchange(const Tree& tree, std::int64_t unit = 1) {
  std::int64_t widest = 1;
  for (std::uint32_t i = 1; i <= tree.height; ++i) {
    widest = std::max<std::int64_t>(widest, arity(tree, i));
  }
  const std::int64_t counted = std::min<std::int64_t>(64, 255 / widest);
  std::int64_t slots = 0, most = tree.capacities.empty() ? 1 : tree.capacities[0];
  for (std::uint32_t i = 1; i <= tree.height; ++i) {
    const std::int64_t there = tree.capacities.empty() ? 1 : tree.capacities[i - 1];
    const std::int64_t filled = std::min({most, there, counted});
    const std::int64_t lanes = filled < unit ? filled : filled / unit * unit;
    const std::int64_t branch = leaves(tree, i - 1);
    slots += ((arity(tree, i) - 1) * branch * branch + lanes - 1) / lanes;
    most = lanes * arity(tree, i);
  }
  return slots;
}

// The steps in [DD96] for one block, extended to N pipelined blocks.
std::int64_t documented(const Algorithm& algorithm, const Tree& tree, std::int64_t blocks) {
  const std::int64_t h = tree.height, n = leaves(tree, tree.height);
  const std::string name = algorithm.name;
  const std::int64_t late = arity(tree, 1) == 2 && n > 2 ? 1 : 0;
  std::int64_t sum = 0, busy = h == 1 ? n : arity(tree, tree.height) - 1;
  for (std::uint32_t i = 1; i <= tree.height; ++i) {
    sum += arity(tree, i);
    if (i < tree.height) busy = std::max<std::int64_t>(busy, arity(tree, i));
  }
  switch (algorithm.collective.value()) {
    case Collective::kBroadcast:
      return name == "leaf" ? sum + h - 1 + busy * (blocks - 1) : 2 * h + blocks - 1;
    case Collective::kAllgather: return (n - 1 + late) * blocks + 1;
    case Collective::kAllToAll:
      return total_exchange(tree) * blocks + (name == "leaf" ? 2 * h - 1 : h * h);
    default: return (n - 1) * blocks + 1 + late;
  }
}

// The steps that a router may hold a message.
std::int64_t longest_wait(const Algorithm& algorithm, const Tree& tree) {
  std::uint32_t most = 1;
  if (std::string(algorithm.name) != "leaf" || algorithm.collective != Collective::kBroadcast) {
    return most;
  }
  for (std::uint32_t level = 1; level <= tree.height; ++level) {
    most = std::max(most, arity(tree, level));
  }
  return most;
}

// Replays a schedule whose routers only pass blocks on.
replay::LinkOutcome replayed(const Programs& programs, const topology::Topology& topology,
                             std::int64_t blocks) {
  for (const Program& program : programs) {
    EXPECT_EQ(program.phases_count, 1);
    for (std::uint32_t at = 0; at < program.actions_count; ++at) {
      EXPECT_NE(program.actions[at].kind, ActionKind::kCombine);
    }
  }
  return or_throw(replay::run(programs, topology, blocks));
}

TEST(Leaf, ReplaysInTheDocumentedSteps) {
  int replays = 0;
  for (const Tree& tree : all_trees(whole() ? 256 : 125, 25)) {
    const auto topology = or_throw(topology::parse(fat_trees::spec(tree)));
    const std::uint32_t n = topology->ranks();
    std::set<std::uint32_t> roots{0, 1, n - 1};
    for (std::uint32_t root = 0; root < n && n <= 27; ++root) roots.insert(root);
    for (const Algorithm& algorithm : leaf_algorithms()) {
      const bool always = algorithm.collective == Collective::kAllgather;
      if (n > 64 && !always && !whole()) continue;
      for (const std::uint32_t root : roots) {
        if (!is_rooted(algorithm) && root != 0) continue;
        for (const std::uint32_t window : {1u, 8u}) {
          if (window == 1 && root > 1) continue;
          CollectiveParameters parameters = fat_trees::parameters_of(tree, root);
          parameters.window = window;
          const Programs programs = or_throw(replay::generate(algorithm, parameters));
          for (const std::int64_t blocks : {1, 2, 3, 7, 20}) {
            const bool long_one = algorithm.collective == Collective::kAllToAll;
            if (blocks > 3 && n > (long_one ? 16u : 64u) && root != 1) continue;
            if (blocks > 1 && n > 64 && long_one) continue;
            const auto outcome = replayed(programs, *topology, blocks);
            ASSERT_EQ(outcome.steps, documented(algorithm, tree, blocks)) << topology->spec();
            ASSERT_LE(outcome.held, longest_wait(algorithm, tree)) << topology->spec();
            ++replays;
          }
        }
      }
    }
  }
  EXPECT_GT(replays, 1000);
}

// The least steps of a broadcast of one block with one send per node and step: every router serves
// the neighbour first whose own part takes longest.
std::int64_t least_broadcast(const Tree& tree) {
  std::vector<std::int64_t> down = {0};  // by level, after the node has the block
  for (std::uint32_t level = 1; level <= tree.height; ++level) {
    down.push_back(down.back() + arity(tree, level));
  }
  std::int64_t up = 0;
  for (std::uint32_t level = tree.height; level > 0; --level) {
    std::vector<std::int64_t> parts(arity(tree, level) - 1, down[level - 1]);
    if (level < tree.height) parts.push_back(up);
    std::sort(parts.rbegin(), parts.rend());
    up = 0;
    for (std::size_t turn = 0; turn < parts.size(); ++turn) {
      up = std::max(up, static_cast<std::int64_t>(turn) + 1 + parts[turn]);
    }
  }
  return 1 + up;
}

// [DD96], theorem 1, and section 4 for different arities.
TEST(Leaf, BroadcastsOneBlockInTheLeastSteps) {
  const Algorithm* algorithm = find_algorithm(Collective::kBroadcast, "leaf");
  int trees_seen = 0;
  for (const Tree& tree : all_trees(256, 400)) {
    Program program;
    ASSERT_EQ(algorithm->generate(fat_trees::parameters_of(tree, 1), 0, program), Status::kOk);
    ASSERT_EQ(phase_steps(program, 1), least_broadcast(tree)) << fat_trees::spec(tree);
    ++trees_seen;
  }
  EXPECT_GT(trees_seen, 150);
}

// Steps for one block by an independent prototype: broadcast, scatter and gather, allgather, and
// all-to-all with constant and with exponential capacities.
struct Prototype {
  std::uint32_t arity, height;
  std::int64_t broadcast, scatter, allgather, constant, exponential;
};
constexpr Prototype kPrototype[] = {
    {2, 1, 2, 2, 2, 2, 2},       {2, 2, 5, 5, 5, 8, 6},     {2, 3, 8, 9, 9, 26, 12},
    {2, 4, 11, 17, 17, 92, 22},  {3, 1, 3, 3, 3, 3, 3},     {3, 2, 7, 9, 9, 23, 11},
    {3, 3, 11, 27, 27, 187, 31}, {4, 2, 9, 16, 16, 54, 18}, {4, 3, 14, 64, 64, 824, 68},
    {5, 2, 11, 25, 25, 107, 27},
};

std::int64_t claimed(Collective collective, const Tree& tree) {
  const Algorithm* algorithm = find_algorithm(collective, "leaf");
  Program program;
  const Status status = algorithm->generate(fat_trees::parameters_of(tree, 0), 0, program);
  return status == Status::kOk ? phase_steps(program, 1) : -1;
}

// Each program claims the prototype's steps; the replays show that it takes the steps that it
// claims.
TEST(Leaf, ClaimsThePrototypesSteps) {
  for (const Prototype& row : kPrototype) {
    const Tree tree{row.arity, row.height, {}};
    const Tree fat = fat_trees::with_capacities(tree).back();
    EXPECT_EQ(claimed(Collective::kBroadcast, tree), row.broadcast);
    EXPECT_EQ(claimed(Collective::kScatter, tree), row.scatter);
    EXPECT_EQ(claimed(Collective::kGather, tree), row.scatter);
    EXPECT_EQ(claimed(Collective::kAllgather, tree), row.allgather);
    EXPECT_EQ(claimed(Collective::kAllToAll, tree), row.constant);
    EXPECT_EQ(claimed(Collective::kAllToAll, fat), row.exponential);
  }
}

// The form of the leaf algorithms' claimed bounds.
TEST(Leaf, StepsOverLanesAreNeverTooMany) {
  for (std::uint32_t lanes = 1; lanes <= 12; ++lanes) {
    for (std::uint32_t blocks = 1; blocks <= 40; ++blocks) {
      const Count count = steps_over_lanes(3, blocks, lanes);
      const std::uint32_t rest = blocks % lanes;
      const bool exact = rest == 0 || rest + 1 == lanes || lanes % rest == 0;
      for (std::int64_t n = 1; n <= 100; ++n) {
        const std::int64_t least = 3 + (blocks * n + lanes - 1) / lanes;
        const std::int64_t value = count_value(count, n);
        ASSERT_LE(value, least) << blocks << " over " << lanes << ", N = " << n;
        if (exact) {
          ASSERT_EQ(value, least) << blocks << " over " << lanes << ", N = " << n;
        }
        ASSERT_GE(value, 3 + blocks * n / (2 * lanes)) << blocks << " over " << lanes;
      }
    }
  }
}

class TotalExchange : public ::testing::TestWithParam<const char*> {
 protected:
  const Algorithm* algorithm = find_algorithm(Collective::kAllToAll, GetParam());
};
INSTANTIATE_TEST_SUITE_P(Leaf, TotalExchange, ::testing::Values("leaf", "leaf-serial"),
                         [](const auto& test) {
                           return std::string(test.param) == "leaf" ? "Pipelined" : "Serial";
                         });

TEST_P(TotalExchange, KeepsToAnyCapacities) {
  ASSERT_NE(algorithm, nullptr);
  int replays = 0;
  for (const Tree& constant : all_trees(whole() ? 256 : 64, 24)) {
    const std::vector<Tree> all = fat_trees::with_capacities(constant);
    const std::size_t stride = std::max<std::size_t>(1, all.size() / (whole() ? 40 : 8));
    for (std::size_t at = (all.size() - 1) % stride; at < all.size(); at += stride) {
      const auto topology = or_throw(topology::parse(fat_trees::spec(all[at])));
      const CollectiveParameters parameters = fat_trees::parameters_of(all[at], 0);
      const Programs programs = or_throw(replay::generate(*algorithm, parameters));
      for (const std::int64_t blocks : {1, 2, 3}) {
        if (blocks > 1 && topology->ranks() > 27) continue;
        const auto outcome = replayed(programs, *topology, blocks);
        ASSERT_EQ(outcome.steps, documented(*algorithm, all[at], blocks)) << topology->spec();
        ASSERT_LE(outcome.held, 1) << topology->spec();
        ++replays;
      }
    }
  }
  EXPECT_GT(replays, 100);
}

// Lanes that can never be filled stay empty. If ranks have several lanes, a slot may use a few
// lanes less than there are, but at least the largest multiple of a rank's lanes.
TEST_P(TotalExchange, LeavesLanesEmpty) {
  ASSERT_NE(algorithm, nullptr);
  int replays = 0, short_of = 0;
  for (const Tree& plain : all_trees(whole() ? 64 : 27, 8)) {
    for (const std::uint32_t first : {1u, 2u, 3u, 5u}) {
      const std::vector<Tree> all = fat_trees::with_capacities(plain, first, 2);
      const std::size_t stride = std::max<std::size_t>(1, all.size() / (whole() ? 40 : 12));
      for (std::size_t at = (all.size() - 1) % stride; at < all.size(); at += stride) {
        const auto topology = or_throw(topology::parse(fat_trees::spec(all[at])));
        const Programs programs =
            or_throw(replay::generate(*algorithm, fat_trees::parameters_of(all[at], 0)));
        for (const std::int64_t blocks : {1, 2, 3}) {
          const auto outcome = replayed(programs, *topology, blocks);
          ASSERT_LE(outcome.held, 1) << topology->spec();
          const std::int64_t least = documented(*algorithm, all[at], blocks);
          const std::int64_t ramp = least - total_exchange(all[at]) * blocks;
          ASSERT_GE(outcome.steps, least) << topology->spec();
          ASSERT_LE(outcome.steps, total_exchange(all[at], first) * blocks + ramp)
              << topology->spec();
          if (first == 1) {
            ASSERT_EQ(outcome.steps, least) << topology->spec();
          }
          short_of += outcome.steps > least ? 1 : 0;
          ++replays;
        }
      }
    }
  }
  EXPECT_GT(replays, 1000);
  EXPECT_LT(short_of, replays / 20);
}

// All leaf algorithms, with more lanes than they use.
TEST(Leaf, ReplaysOnWideBranches) {
  for (const Tree& tree : std::vector<Tree>{{2, 3, {1, 5, 5}},
                                            {2, 3, {2, 1, 7}},
                                            {2, 2, {2, 3}},
                                            {3, 2, {4, 1}},
                                            {4, 1, {3}},
                                            {0, 2, {1, 4}, {2, 3}},
                                            {0, 3, {2, 1, 9}, {3, 2, 2}}}) {
    const auto topology = or_throw(topology::parse(fat_trees::spec(tree)));
    for (const Algorithm& algorithm : leaf_algorithms()) {
      const CollectiveParameters parameters =
          fat_trees::parameters_of(tree, is_rooted(algorithm) ? 1 : 0);
      const Programs programs = or_throw(replay::generate(algorithm, parameters));
      for (const std::int64_t blocks : {1, 2, 7}) {
        const auto outcome = replayed(programs, *topology, blocks);
        EXPECT_EQ(outcome.steps, documented(algorithm, tree, blocks))
            << collective_name(algorithm.collective) << ' ' << topology->spec();
      }
    }
  }
}

TEST(Leaf, TotalExchangeNeedsLanes) {
  const Tree none{2, 2, {1, 0}};
  Program program;
  const Algorithm& leaf = *find_algorithm(Collective::kAllToAll, "leaf");
  EXPECT_EQ(leaf.generate(fat_trees::parameters_of(none, 0), 0, program), Status::kBadArgument);
}

TEST(Leaf, DescriptorsAreSmall) {
  std::vector<std::uint8_t> bytes(kMaxDescriptorBytes);
  for (const Tree& tree :
       std::vector<Tree>{{2, 4, {}}, {4, 2, {}}, {4, 3, {}}, {5, 3, {}}, {0, 3, {}, {4, 3, 5}}}) {
    CollectiveParameters parameters = fat_trees::parameters_of(tree, 1);
    parameters.topology_digest = ~0ull;
    parameters.window = 16;
    for (const Algorithm& algorithm : leaf_algorithms()) {
      std::size_t longest[2] = {};
      for (std::uint32_t node = 0; node < algorithm_nodes(algorithm, parameters); ++node) {
        Program program;
        ASSERT_EQ(algorithm.generate(parameters, node, program), Status::kOk);
        std::size_t written = 0;
        ASSERT_EQ(encode_program(program, bytes.data(), bytes.size(), written), Status::kOk);
        std::size_t& most = longest[node < parameters.ranks ? 0 : 1];
        most = std::max(most, written);
      }
      std::printf("%s %s %s: a rank at most %zu bytes, a router %zu\n",
                  collective_name(algorithm.collective), algorithm.name,
                  fat_trees::spec(tree).c_str(), longest[0], longest[1]);
      EXPECT_LE(longest[0], 700u);
      EXPECT_LE(longest[1], 1600u);
    }
  }
}

// The worst status of the nodes on the ways to the root and to another leaf: one node of each kind.
Status worst_status(const Algorithm& algorithm, const Tree& tree) {
  const auto ranks = static_cast<std::uint32_t>(leaves(tree, tree.height));
  const CollectiveParameters parameters = fat_trees::parameters_of(tree, std::min(5u, ranks - 1));
  Status worst = Status::kOk;
  std::uint32_t first = 0, size = parameters.ranks;
  for (std::uint32_t level = 0; level <= tree.height; ++level) {
    const auto below = static_cast<std::uint32_t>(leaves(tree, level));
    for (const std::uint32_t index : {parameters.root / below, 0u, size - 1}) {
      Program program;
      const Status status = algorithm.generate(parameters, first + index, program);
      if (status != Status::kOk) {
        worst = status;
        continue;
      }
      EXPECT_EQ(check_program(program), Status::kOk);
    }
    first += size;
    if (level < tree.height) size /= arity(tree, level + 1);
  }
  return worst;
}

TEST(Leaf, FitsTheTablesOfLargeTrees) {
  struct Largest {
    Collective collective;
    std::uint32_t arity, height;
    const char* algorithm = "leaf";
  };
  for (const Largest& one : std::vector<Largest>{{Collective::kScatter, 2, 14},
                                                 {Collective::kScatter, 5, 8},
                                                 {Collective::kGather, 2, 14},
                                                 {Collective::kGather, 5, 8},
                                                 {Collective::kAllgather, 2, 10},
                                                 {Collective::kAllgather, 3, 6},
                                                 {Collective::kAllgather, 4, 6},
                                                 {Collective::kAllgather, 5, 6},
                                                 {Collective::kAllgather, 16, 4},
                                                 {Collective::kAllToAll, 2, 10},
                                                 {Collective::kAllToAll, 3, 6},
                                                 {Collective::kAllToAll, 4, 5},
                                                 {Collective::kAllToAll, 5, 4},
                                                 {Collective::kAllToAll, 32, 2},
                                                 {Collective::kAllToAll, 2, 10, "leaf-serial"},
                                                 {Collective::kAllToAll, 5, 4, "leaf-serial"}}) {
    const Algorithm* algorithm = find_algorithm(one.collective, one.algorithm);
    const std::string name = std::string(collective_name(one.collective)) + " k " +
                             std::to_string(one.arity) + " h " + std::to_string(one.height);
    EXPECT_EQ(worst_status(*algorithm, {one.arity, one.height, {}}), Status::kOk) << name;
    EXPECT_EQ(worst_status(*algorithm, {one.arity, one.height + 1, {}}), Status::kTooLarge)
        << name << " + 1";
  }
}

TEST(Leaf, FitsTheTablesOfLargeTreesWithDifferentArities) {
  struct UnequalTree {
    Collective collective;
    std::vector<std::uint32_t> arities;
    Status status;
  };
  for (const UnequalTree& one :
       std::vector<UnequalTree>{{Collective::kScatter, {2, 3, 2, 3, 2, 3, 2, 3}, Status::kOk},
                                {Collective::kAllgather, {4, 3, 2, 5, 2, 3}, Status::kOk},
                                {Collective::kAllgather, {5, 4, 5, 4, 5, 4, 5}, Status::kTooLarge},
                                {Collective::kAllToAll, {4, 3, 2, 5}, Status::kOk},
                                {Collective::kAllToAll, {2, 3, 2, 3, 2, 3}, Status::kOk},
                                {Collective::kAllToAll, {2, 2, 2, 2, 4}, Status::kOk}}) {
    const Algorithm* algorithm = find_algorithm(one.collective, "leaf");
    const Tree tree{0, static_cast<std::uint32_t>(one.arities.size()), {}, one.arities};
    EXPECT_EQ(worst_status(*algorithm, tree), one.status)
        << collective_name(one.collective) << ' ' << fat_trees::spec(tree);
  }
}

// No tree of at most 256 leaves is refused, whatever its arities and lanes.
TEST_P(TotalExchange, FitsTheTablesOfAnyTree) {
  ASSERT_NE(algorithm, nullptr);
  std::size_t trees = 0, most_actions = 0;
  for (const std::vector<std::uint32_t>& arities : fat_trees::arities_of_all(256)) {
    for (const Tree& tree : fat_trees::with_typical_lanes(arities)) {
      ASSERT_EQ(worst_status(*algorithm, tree), Status::kOk) << fat_trees::spec(tree);
      Program rank;
      ASSERT_EQ(algorithm->generate(fat_trees::parameters_of(tree, 0), 0, rank), Status::kOk);
      for (const std::int64_t blocks : {1, 2, 7}) {
        ASSERT_EQ(phase_steps(rank, blocks), documented(*algorithm, tree, blocks))
            << fat_trees::spec(tree);
      }
      most_actions = std::max<std::size_t>(most_actions, rank.actions_count);
    }
    ++trees;
  }
  EXPECT_EQ(trees, 4613u);
  EXPECT_GT(most_actions, 2 * 8 + 1u) << "no rank has an action per message of its lowest stages";
  std::printf("%zu trees; a rank has at most %zu actions\n", trees, most_actions);
}

TEST(Leaf, RefusesOtherGroups) {
  for (const Algorithm& algorithm : leaf_algorithms()) {
    Program program;
    EXPECT_EQ(algorithm.generate({.ranks = 16}, 0, program), Status::kUnsupported);
    EXPECT_EQ(algorithm.generate({.ranks = 16, .arity = 3, .height = 2}, 0, program),
              Status::kUnsupported);
    const CollectiveParameters parameters{.ranks = 16, .arity = 4, .height = 2};
    EXPECT_EQ(algorithm.generate(parameters, 20, program), Status::kOk);
    EXPECT_EQ(algorithm.generate(parameters, 21, program), Status::kBadArgument);
    const std::uint32_t arities[] = {4, 3, 1};
    CollectiveParameters unequal{.ranks = 12, .height = 2};
    EXPECT_EQ(algorithm.generate(unequal, 0, program), Status::kUnsupported);
    unequal.arities = arities;
    EXPECT_EQ(algorithm.generate(unequal, 15, program), Status::kOk);
    EXPECT_EQ(algorithm.generate(unequal, 16, program), Status::kBadArgument);
    unequal.height = 3;  // with a level of one child
    EXPECT_EQ(algorithm.generate(unequal, 0, program), Status::kUnsupported);
    unequal.height = 2;
    unequal.ranks = 16;
    EXPECT_EQ(algorithm.generate(unequal, 0, program), Status::kUnsupported);
  }
}

}  // namespace
}  // namespace espalier

// Total exchanges and multinode broadcasts on fat trees by explicit steps (searched:
// leaf-overlapped, leaf-single, leaf-flood): verified, and run on simulated machines in the minimum
// steps by [DD96], also with several blocks in succession. All trees of at most 64 leaves, or 256
// for flooding, with ESPALIER_WHOLE=1, otherwise a sample.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "espalier/collectives/search.h"
#include "tests/fat_tree/trees.h"
#include "tests/grid/grid.h"
#include "tests/papers/cost/leaf_queues.h"

namespace espalier::grid {
namespace {

struct Tree {
  std::uint32_t arity, height, ranks;
};

// All trees of at most `leaves` leaves, or a sample.
std::vector<Tree> trees(std::uint32_t leaves = 64) {
  std::vector<Tree> all;
  for (std::uint32_t k = 2; k <= (whole() ? std::min(leaves, 128u) : 5); ++k) {
    std::uint32_t ranks = k;
    for (std::uint32_t h = 1; ranks <= (whole() ? leaves : 16u); ++h, ranks *= k) {
      all.push_back({k, h, ranks});
    }
  }
  return all;
}

std::string spec(const Tree& tree, const std::string& lanes = "1") {
  return "fattree:k=" + std::to_string(tree.arity) + ",h=" + std::to_string(tree.height) +
         ",c=" + lanes;
}

// Lanes of the branches; for large trees one per branch.
std::vector<std::string> lanes_of(const Tree& tree) {
  if (tree.ranks > 16) return {"1"};
  std::string uneven = "3";
  for (std::uint32_t level = 2; level <= tree.height; ++level) {
    uneven += level % 2 == 0 ? ",1" : ",3";
  }
  return {"1", "k", uneven};
}

Programs found(const char* name, const topology::Topology& topology, std::uint32_t window = 8,
               Collective collective = Collective::kAllToAll) {
  const searched::SearchedAlgorithm* algorithm = searched::find_searched(collective, name);
  CollectiveParameters parameters = topology_parameters(topology, 0, &kBlocks);
  parameters.window = window;
  return or_throw(algorithm->search(topology, parameters));
}

testing::Job job_of(const Programs& programs, std::int64_t blocks) {
  testing::Job job{.op = {.op = Op::kSum, .type = Type::kI32}};
  job.count = testing::count_of_blocks(programs[0], job.op, static_cast<std::uint64_t>(blocks), 5);
  return job;
}

void prove_and_run(const char* name, const Tree& tree, std::int64_t steps,
                   Collective collective = Collective::kAllToAll, const std::string& lanes = "1") {
  const auto topology = or_throw(topology::parse(spec(tree, lanes)));
  const Programs programs = found(name, *topology, 8, collective);
  ASSERT_EQ(programs.size(), topology->nodes());
  for (const Program& program : programs) {
    ASSERT_EQ(check_program(program), Status::kOk) << name << topology->spec() << program.node;
  }
  EXPECT_EQ(phase_steps(programs[0], 1), steps) << name << " on " << topology->spec();
  EXPECT_EQ(count_value(programs[0].counts[programs[0].bound_ref], 1), steps);
  const std::int64_t most = tree.ranks <= 16 ? 4 : 2;
  EXPECT_TRUE(verified(*topology, programs, most, name).async);
  const sim::Model model =
      testing::model_for(programs[0], [](std::uint32_t, std::uint32_t) { return 1u; });
  for (std::int64_t blocks = 1; blocks <= most; ++blocks) {
    const sim::RunResult result =
        testing::run_in_lock_step(programs, job_of(programs, blocks), model);
    EXPECT_EQ(result.steps, phase_steps(programs[0], blocks)) << name << topology->spec() << blocks;
  }
}

// n^2 (k-1)/k^2 messages cross the branch from the root to a subtree, one per step. The first takes
// h steps to the root, and the last takes h - 1 more steps below that branch.
TEST(TotalExchange, OverlapsToTheLeastSteps) {
  for (const Tree& tree : trees()) {
    const std::int64_t below = tree.ranks / tree.arity;
    prove_and_run("leaf-overlapped", tree, below * (tree.ranks - below) + 2 * tree.height - 1);
    if (HasFailure()) return;
  }
}

// The schedules without queues take as many steps as the paper's queues.
TEST(TotalExchange, SendsSinglyAsTheQueuesDo) {
  for (const Tree& tree : trees()) {
    for (const std::string& lanes : lanes_of(tree)) {
      prove_and_run("leaf-single", tree,
                    cost::single_port_total_exchange(tree.arity, tree.height).steps,
                    Collective::kAllToAll, lanes);
      if (HasFailure()) return;
    }
  }
}

std::string spec(const std::vector<std::uint32_t>& arities, const std::string& lanes) {
  std::string text;
  for (const std::uint32_t k : arities) text += (text.empty() ? "" : "x") + std::to_string(k);
  return "fattree:k=" + text + (arities.size() == 1 ? ",h=1" : "") + ",c=" + lanes;
}

// The least steps for N blocks by the sends of each router: up, down, and among its own children.
// The first message arrives after as many steps as the router's level, and the last one needs one
// step less.
std::int64_t least_steps(const std::vector<std::uint32_t>& arities, std::int64_t blocks) {
  std::int64_t n = 1, all = 1, least = 0, level = 0;
  for (const std::uint32_t k : arities) n *= k;
  for (const std::uint32_t k : arities) {
    const std::int64_t branch = all;
    all *= k;
    ++level;
    const std::int64_t sends = 2 * all * (n - all) + all * (all - branch);
    least = std::max(least, sends * blocks + 2 * level - 1);
  }
  return least;
}

// All trees of at most 256 leaves, proven for every N. No schedule of one send per node and step
// takes fewer steps for any N.
TEST(TotalExchange, SendsSinglyOnAnyTree) {
  const std::vector<std::vector<std::uint32_t>> all = fat_trees::arities_of_all(256);
  std::uint32_t at = 0, proven = 0;
  for (const std::vector<std::uint32_t>& arities : all) {
    const auto topology = or_throw(topology::parse(spec(arities, "1")));
    const Programs programs = found("leaf-single", *topology);
    ASSERT_EQ(programs.size(), topology->nodes()) << topology->spec();
    for (const std::int64_t blocks : {1, 2, 7}) {
      ASSERT_EQ(phase_steps(programs[0], blocks), least_steps(arities, blocks)) << topology->spec();
      ASSERT_EQ(count_value(programs[0].counts[programs[0].bound_ref], blocks),
                least_steps(arities, blocks));
    }
    if (whole() || at++ % 64 == 0) {
      const verify::Verdict verdict = verified(*topology, programs, 0, topology->spec());
      EXPECT_TRUE(verdict.for_all && verdict.async) << topology->spec() << verdict.limited;
      if (HasFailure()) return;
      ++proven;
    }
  }
  std::printf("%zu trees, %u proven for every N\n", all.size(), proven);
}

// Levels of different arities, up to 256 leaves: also run, on branches of one lane and of more,
// which stay unused.
TEST(TotalExchange, SendsSinglyOnLargeTrees) {
  const std::vector<std::vector<std::uint32_t>> kTrees = {
      {3, 5, 7},  {2, 3, 16},         {2, 2, 2, 2, 16}, {2, 2, 64},   {4, 4, 2, 8}, {7, 5, 2},
      {16, 3, 2}, {2, 2, 4, 2, 4, 2}, {3, 2, 3, 2, 3},  {5, 5, 5, 2}, {2, 128},     {127, 2}};
  for (std::size_t at = 0; at < (whole() ? kTrees.size() : 2); ++at) {
    const std::vector<std::uint32_t>& arities = kTrees[at];
    std::string uneven = "2";
    for (std::size_t level = 1; level < arities.size(); ++level) {
      uneven += level % 2 == 0 ? ",1" : ",3";
    }
    for (const std::string& lanes : {std::string("1"), std::string("k"), uneven}) {
      const auto topology = or_throw(topology::parse(spec(arities, lanes)));
      const Programs programs = found("leaf-single", *topology);
      EXPECT_TRUE(verified(*topology, programs, 0, topology->spec()).async) << topology->spec();
      const sim::Model model =
          testing::model_for(programs[0], [](std::uint32_t, std::uint32_t) { return 1u; });
      for (const std::int64_t blocks : {1, 2}) {
        const sim::RunResult result =
            testing::run_in_lock_step(programs, job_of(programs, blocks), model);
        EXPECT_EQ(result.steps, least_steps(arities, blocks)) << topology->spec() << blocks;
      }
      if (HasFailure()) return;
    }
  }
}

// Also on branches of several lanes, which stay unused.
TEST(MultinodeBroadcast, SendsSinglyInThePapersSteps) {
  for (const Tree& tree : trees(256)) {
    for (const std::string& lanes : lanes_of(tree)) {
      prove_and_run("leaf-single", tree,
                    cost::single_port_multinode_broadcast(tree.arity, tree.height).steps,
                    Collective::kAllgather, lanes);
      if (HasFailure()) return;
    }
  }
}

// A router below the root sends every block k times, and then waits for the levels below it.
TEST(MultinodeBroadcast, BlocksFollowOneAnother) {
  for (const Tree& tree : trees()) {
    const auto topology = or_throw(topology::parse(spec(tree)));
    const Programs programs = found("leaf-single", *topology, 8, Collective::kAllgather);
    const std::int64_t period = phase_steps(programs[0], 2) - phase_steps(programs[0], 1);
    const std::int64_t k = tree.arity, n = tree.ranks;
    EXPECT_EQ(period, tree.height == 1 ? k * (k - 1) : k * n + (k + 1) * (tree.height - 2))
        << topology->spec();
  }
}

// The steps of each block after the first. If levels overlap, they equal the number of messages
// that cross a branch of the root, which is the minimum.
TEST(TotalExchange, BlocksFollowOneAnother) {
  const auto topology = or_throw(topology::parse("fattree:k=2,h=4,c=1"));
  const Programs overlapped = found("leaf-overlapped", *topology);
  const Programs single = found("leaf-single", *topology);
  const auto period = [](const Programs& programs) {
    return phase_steps(programs[0], 2) - phase_steps(programs[0], 1);
  };
  std::printf("steps a block: overlapped %lld, single %lld\n",
              static_cast<long long>(period(overlapped)), static_cast<long long>(period(single)));
  EXPECT_EQ(period(overlapped), 8 * 8);
  EXPECT_LT(period(single), phase_steps(single[0], 1));
}

TEST(TotalExchange, RunsUnderSkew) {
  const auto topology = or_throw(topology::parse("fattree:k=2,h=3,c=1"));
  const std::pair<const char*, Collective> kCases[] = {{"leaf-overlapped", Collective::kAllToAll},
                                                       {"leaf-single", Collective::kAllToAll},
                                                       {"leaf-single", Collective::kAllgather},
                                                       {"leaf-flood", Collective::kAllgather}};
  for (const auto& [name, collective] : kCases) {
    for (const std::uint32_t window : {1u, 3u, 8u}) {
      const Programs programs = found(name, *topology, window, collective);
      testing::JobCluster::Options options;
      options.model = testing::model_for(programs[0]);
      options.unwilling = true;
      testing::run_freely(programs, job_of(programs, 3), options);
      ASSERT_FALSE(HasFailure()) << name << ", window " << window;
    }
  }
}

struct FloodedTree {
  std::uint32_t arity;
  std::vector<std::uint32_t> capacities;
};

std::string spec(const FloodedTree& tree) {
  std::string text;
  for (const std::uint32_t lanes : tree.capacities) {
    text += (text.empty() ? "" : ",") + std::to_string(lanes);
  }
  return "fattree:k=" + std::to_string(tree.arity) +
         ",h=" + std::to_string(tree.capacities.size()) + ",c=" + text;
}

// Expects the steps of the paper's queues for N = 1, and no more per further block than the leaves'
// links need.
void flood(const FloodedTree& tree, std::int64_t run_up_to) {
  const auto topology = or_throw(topology::parse(spec(tree)));
  const Programs programs = found("leaf-flood", *topology, 8, Collective::kAllgather);
  const std::string name = "leaf-flood on " + topology->spec();
  const std::int64_t n = topology->ranks();
  const std::int64_t steps = cost::multiport_flood(tree.arity, tree.capacities).steps;
  EXPECT_EQ(phase_steps(programs[0], 1), steps) << name;
  if (tree.capacities[0] == 1) {
    EXPECT_EQ(steps, tree.arity == 2 && n > 2 ? n + 1 : n) << name;
    EXPECT_EQ(phase_steps(programs[0], 5), 4 * (steps - 1) + steps) << name;
  }
  const verify::Verdict verdict = verified(*topology, programs, 0, name);
  EXPECT_TRUE(verdict.for_all) << name << ": " << verdict.limited;
  const sim::Model model = testing::model_for(
      programs[0],
      [&](std::uint32_t from, std::uint32_t to) { return topology->capacity(from, to); });
  for (std::int64_t blocks = 1; blocks <= run_up_to; ++blocks) {
    const sim::RunResult result =
        testing::run_in_lock_step(programs, job_of(programs, blocks), model);
    EXPECT_EQ(result.steps, phase_steps(programs[0], blocks)) << name << ", N " << blocks;
  }
}

// Constant and exponential capacities; and others, with several lanes at the leaves and above.
TEST(Flood, TakesTheLeastSteps) {
  for (std::uint32_t k = 2; k <= kMaxLinks; ++k) {
    std::vector<std::uint32_t> constant, exponential;
    std::uint32_t lanes = 1, leaves = k;
    for (; leaves <= (whole() || k == 2 || k == 16 ? 256u : 27u); lanes *= k, leaves *= k) {
      constant.push_back(1);
      exponential.push_back(lanes);
      flood({k, constant}, leaves <= 16 ? 4 : 1);
      if (lanes > 1 && lanes <= kMaxWindow) flood({k, exponential}, leaves <= 16 ? 4 : 1);
      if (HasFailure()) return;
    }
  }
}

TEST(Flood, KeepsToAnyCapacities) {
  auto random = [state = std::uint32_t{1}](std::uint32_t most) mutable {
    state = state * 1664525 + 1013904223;
    return 1 + (state >> 16) % most;
  };
  for (const auto& [k, h] :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{2, 3}, {3, 2}, {2, 4}, {5, 2}}) {
    for (int tried = 0; tried < (whole() ? 40 : 6); ++tried) {
      FloodedTree tree{k, {}};
      for (std::uint32_t level = 0; level < h; ++level) tree.capacities.push_back(random(k + 1));
      flood(tree, 3);
      if (HasFailure()) return;
    }
  }
}

// More lanes than nodes count messages. They are refused for some N if blocks overlap wrongly.
TEST(Flood, KeepsToWhatNodesCount) {
  for (const FloodedTree& tree : std::vector<FloodedTree>{
           {128, {1}}, {128, {2}}, {100, {3}}, {16, {3, 40}}, {2, {100, 200, 300}}}) {
    const auto topology = or_throw(topology::parse(spec(tree)));
    const Programs programs = found("leaf-flood", *topology, 8, Collective::kAllgather);
    EXPECT_TRUE(verified(*topology, programs, 0, topology->spec()).for_all) << topology->spec();
  }
}

}  // namespace
}  // namespace espalier::grid

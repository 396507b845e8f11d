// Every algorithm in lock step: it takes the steps that its programs claim, and gives correct
// results.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "collectives/algorithms/testing/parameters.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "tests/whole.h"

namespace espalier::testing {
namespace {

Operator sum() { return {.op = Op::kSum, .type = Type::kI32}; }

// Returns the lanes of the link between two nodes of a fat tree: the lower node's level determines
// them.
std::uint32_t lanes_between(const CollectiveParameters& parameters, std::uint32_t a,
                            std::uint32_t b) {
  if (parameters.capacities == nullptr) return 1;
  std::uint32_t lower = std::min(a, b);
  std::uint32_t level = 0;
  for (std::uint32_t nodes = parameters.ranks; lower >= nodes; nodes /= parameters.arity) {
    lower -= nodes;
    ++level;
  }
  return parameters.capacities[level];
}

// A part of the grid; tests/grid has all of it.
void check_steps(const Algorithm& algorithm, const CollectiveParameters& parameters) {
  const Programs programs = programs_of(algorithm, parameters);
  if (programs.empty()) return;
  const auto lanes = [&](std::uint32_t a, std::uint32_t b) {
    return lanes_between(parameters, a, b);
  };
  for (const std::uint64_t blocks : {1u, 2u, 3u, 7u}) {
    for (const std::uint64_t missing : {0u, 5u}) {
      Job job{.root = parameters.root, .op = sum()};
      job.count = count_of_blocks(programs[0], job.op, blocks, missing);
      const sim::RunResult result = run_in_lock_step(programs, job, model_for(programs[0], lanes));
      Layout layout;
      ASSERT_EQ(make_layout(programs[0], job.count, 4, layout), Status::kOk);
      const Count& claim = programs[0].counts[programs[0].steps_ref];
      const std::string where = std::string(collective_name(algorithm.collective)) + " " +
                                algorithm.name + " p " + std::to_string(parameters.ranks) +
                                " root " + std::to_string(parameters.root) + " N " +
                                std::to_string(layout.blocks);
      // A single rank may copy, but no block moves.
      if (parameters.ranks > 1) {
        ASSERT_EQ(result.steps, count_value(claim, layout.blocks)) << where;
      }
      ASSERT_FALSE(::testing::Test::HasFailure()) << where;
    }
  }
  const Job job{
      .root = parameters.root, .count = count_of_blocks(programs[0], sum(), 5), .op = sum()};
  JobCluster::Options options;
  options.model = model_for(programs[0], lanes);
  options.model.jitter = 3;
  options.model.eager_bytes = parameters.ranks % 2 == 0 ? 0 : 4096;
  options.unwilling = true;
  run_freely(programs, job, options);
}

TEST(Steps, AreAsClaimedAnywhere) {
  const AlgorithmList table = algorithms();
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    if (table[i].where != Where::kAnywhere) continue;
    std::uint64_t turn = i;
    for (const std::uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 8u, 11u, 16u, 23u, 40u}) {
      for (const std::uint32_t root : {0u, 1u, ranks - 1}) {
        if (root >= ranks || (small_sample() && ranks > 11) || !sampled(turn++, 3)) continue;
        CollectiveParameters parameters{
            .ranks = ranks, .root = root, .blocks = &kSmallBlocks, .blocks_count = 1};
        check_steps(table[i], parameters);
        if (HasFailure()) return;
      }
    }
  }
}

// More links per node than a word has bits.
TEST(Steps, AreAsClaimedAmongAHundred) {
  static_assert(kMaxLinks >= 99);
  const Algorithm* algorithm = find_algorithm(Collective::kAllToAll, "pairwise");
  ASSERT_NE(algorithm, nullptr);
  const Programs programs =
      programs_of(*algorithm, {.ranks = 100, .blocks = &kSmallBlocks, .blocks_count = 1});
  ASSERT_EQ(programs.size(), 100u);
  const Job job{.count = count_of_blocks(programs[0], sum(), 1), .op = sum()};
  EXPECT_EQ(run_in_lock_step(programs, job, model_for(programs[0])).steps, 99);
}

TEST(Steps, AreAsClaimedInThePostalModel) {
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.takes_lambda) continue;
    for (std::uint32_t ranks = 2; ranks <= 40; ranks += small_sample() ? 9 : 3) {
      for (const auto& [send, latency] : {std::pair{1u, 2u}, {1u, 5u}, {2u, 3u}, {5u, 9u}}) {
        CollectiveParameters parameters{.ranks = ranks, .root = ranks / 2, .window = 16};
        if (algorithm.takes_radix) parameters.radix = ranks % 5 == 1 ? 0 : ranks % 5;
        if (algorithm.takes_ratio && ranks % 2 == 0) {
          parameters.ratio_numerator = 1 + ranks % 5;
          parameters.ratio_denominator = 6;
        }
        parameters.send_ticks = send;
        parameters.latency_ticks = latency;
        check_steps(algorithm, parameters);
        if (HasFailure()) return;
      }
    }
  }
}

struct Tree {
  std::uint32_t arity, height;
  std::uint32_t capacities[3];
};

TEST(Steps, AreAsClaimedOnFatTrees) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.where != Where::kFatTree) continue;
    constexpr Tree kTrees[] = {{2, 1, {1}},    {2, 2, {1, 1}},    {2, 3, {1, 1, 1}},
                               {3, 1, {1}},    {3, 2, {1, 1}},    {4, 2, {1, 1}},
                               {5, 1, {1}},    {2, 3, {1, 2, 4}}, {2, 3, {1, 2, 3}},
                               {3, 2, {1, 3}}, {4, 2, {1, 2}}};
    for (const auto& [arity, height, capacities] : kTrees) {
      CollectiveParameters parameters{.arity = arity, .height = height, .capacities = capacities};
      for (std::uint32_t level = 0; level < height; ++level) parameters.ranks *= arity;
      parameters.blocks = &kSmallBlocks;
      parameters.blocks_count = 1;
      for (const std::uint32_t root : {0u, 1u, parameters.ranks - 1}) {
        if (small_sample() && root > 1) continue;
        parameters.root = root;
        check_steps(algorithm, parameters);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Steps, AreAsClaimedOnHostsMeshesAndTori) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.where == Where::kAnywhere || algorithm.where == Where::kFatTree) continue;
    constexpr std::pair<std::uint32_t, std::uint32_t> kShapes[] = {{1, 1}, {1, 4}, {3, 1}, {2, 2},
                                                                   {3, 4}, {4, 3}, {5, 5}};
    for (const auto& [many, each] : kShapes) {
      CollectiveParameters parameters{.ranks = many * each};
      const std::uint32_t sizes[] = {many, each};
      if (algorithm.where == Where::kHosts) {
        parameters.hosts = many;
        parameters.host_ranks = each;
      } else {
        parameters.grid = sizes;
        parameters.dimensions = 2;
        parameters.wraps = true;
      }
      parameters.blocks = &kSmallBlocks;
      parameters.blocks_count = 1;
      for (const std::uint32_t root : {0u, parameters.ranks / 2, parameters.ranks - 1}) {
        if (small_sample() && root > 1) continue;
        parameters.root = root;
        check_steps(algorithm, parameters);
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace espalier::testing

// Leaf communications on fat trees [DD96]: proven for every N, and run on simulated machines in the
// steps that they claim, with the reference's results. By default a sample of the trees; with
// ESPALIER_WHOLE=1 all of them (tests/README.md says how long), and N up to 20.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/results.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "espalier/collectives/search.h"
#include "tests/fat_tree/trees.h"
#include "tests/grid/grid.h"
#include "tests/papers/cost/leaf_queues.h"

namespace espalier {
namespace {

using fat_trees::Tree;

constexpr BlockRule kBlocks = {0, 64};

// Returns the messages that arrive at all ranks together for N = 1. They limit the N to try.
std::int64_t arrivals(const Algorithm& algorithm, std::int64_t ranks) {
  return fat_trees::is_rooted(algorithm) ? ranks : ranks * ranks;
}

// Returns an N that covers fill, steady state and drain. A block takes the steps of N = 1, and the
// next block starts a stride later. So ceil(first / stride) blocks overlap in the steady state, and
// one more block repeats it.
std::int64_t covering_blocks(const Program& program) {
  const std::int64_t first = phase_steps(program, 1);
  const std::int64_t stride = phase_steps(program, 2) - first;
  return (first + stride - 1) / stride + 1;
}

// Runs of more blocks than covering_blocks() are limited to trees of this many ranks, and to this
// many messages. Larger trees take most of the time, and further blocks repeat the same stride.
constexpr std::uint32_t kMaxRanksOfManyBlocks = 64;
std::int64_t max_arrivals_of_many_blocks() { return whole() ? 1 << 17 : 1 << 12; }

std::vector<std::int64_t> blocks_to_run(const Algorithm& algorithm, const Program& program) {
  std::set<std::int64_t> blocks = {1, covering_blocks(program)};
  for (const std::int64_t many : {2, 3, 7, 20}) {
    if (program.ranks <= kMaxRanksOfManyBlocks &&
        many * arrivals(algorithm, program.ranks) <= max_arrivals_of_many_blocks()) {
      blocks.insert(many);
    }
  }
  return {blocks.begin(), blocks.end()};
}

testing::Job job_of(const Programs& programs, std::int64_t blocks) {
  testing::Job job{.root = programs[0].root, .op = {.op = Op::kSum, .type = Type::kI32}};
  job.count = testing::count_of_blocks(programs[0], job.op, static_cast<std::uint64_t>(blocks), 5);
  return job;
}

struct Schedule {
  std::shared_ptr<const topology::Topology> topology;
  Programs programs;  // empty if the algorithm refuses the tree
  std::string name;
};

Schedule schedule_of(const Algorithm& algorithm, const Tree& tree, std::uint32_t root) {
  Schedule schedule;
  schedule.topology = or_throw(topology::parse(fat_trees::spec(tree)));
  CollectiveParameters parameters = fat_trees::parameters_of(tree, root);
  parameters.topology_digest = schedule.topology->digest();
  parameters.blocks = &kBlocks;
  parameters.blocks_count = 1;
  schedule.programs = grid::programs_of(algorithm, parameters);
  schedule.name = grid::name_of(algorithm, *schedule.topology, parameters);
  return schedule;
}

void prove(const Schedule& schedule) {
  const verify::Verdict verdict =
      grid::verified(*schedule.topology, schedule.programs, 0, schedule.name);
  EXPECT_TRUE(verdict.for_all) << schedule.name << ": " << verdict.limited;
  EXPECT_TRUE(verdict.async) << schedule.name;
}

// Limits of check_each_n(), which expands every N, one by one. prove() has no limits.
constexpr std::uint32_t kMaxRanksOfEachN = 64;
constexpr std::int64_t kMaxArrivalsOfEachN = 1 << 11;

// Verifies every N up to the largest of `blocks` within the limits, without the proof for every N.
void check_each_n(const Algorithm& algorithm, const Schedule& schedule,
                  const std::vector<std::int64_t>& blocks) {
  const std::uint32_t ranks = schedule.programs[0].ranks;
  if (ranks > kMaxRanksOfEachN) return;
  std::int64_t most = 1;
  for (const std::int64_t each : blocks) {
    if (each * arrivals(algorithm, ranks) <= kMaxArrivalsOfEachN) most = each;
  }
  EXPECT_TRUE(grid::verified(*schedule.topology, schedule.programs, most, schedule.name).async)
      << schedule.name;
}

void run(const Schedule& schedule, const std::vector<std::int64_t>& blocks) {
  const Programs& programs = schedule.programs;
  const sim::Model model = testing::model_for(
      programs[0],
      [&](std::uint32_t from, std::uint32_t to) { return schedule.topology->capacity(from, to); });
  for (const std::int64_t each : blocks) {
    const sim::RunResult result =
        testing::run_in_lock_step(programs, job_of(programs, each), model);
    EXPECT_EQ(result.steps, phase_steps(programs[0], each)) << schedule.name << ", N " << each;
    ASSERT_FALSE(::testing::Test::HasFailure()) << schedule.name << ", N " << each;
  }
}

TEST(Leaf, IsProvenAndRuns) {
  int schedules = 0, few = 0;
  for (const Tree& tree : fat_trees::all_trees(whole() ? 256 : 125, 16)) {
    const auto ranks = static_cast<std::uint32_t>(fat_trees::leaves(tree, tree.height));
    for (const Algorithm& algorithm : fat_trees::leaf_algorithms()) {
      // The sample has an allgather on every one of its trees, and the others on small ones.
      const bool always = algorithm.collective == Collective::kAllgather;
      if (ranks > 64 && !always && !whole()) continue;
      std::set<std::uint32_t> roots = {0};
      if (fat_trees::is_rooted(algorithm)) roots.insert({1, ranks - 1});
      for (const std::uint32_t root : roots) {
        const Schedule schedule = schedule_of(algorithm, tree, root);
        ASSERT_FALSE(schedule.programs.empty()) << schedule.name;
        prove(schedule);
        const std::vector<std::int64_t> blocks = blocks_to_run(algorithm, schedule.programs[0]);
        check_each_n(algorithm, schedule, blocks);
        run(schedule, blocks);
        if (HasFailure()) return;
        ++schedules;
        if (ranks > kMaxRanksOfManyBlocks) ++few;
      }
    }
  }
  std::printf(
      "%d schedules proven for every N and run; %d of them, on trees of more than %u ranks, "
      "with N = 1 and the covering N only, and without the check of each N\n",
      schedules, few, kMaxRanksOfManyBlocks);
}

class TotalExchangeRuns : public ::testing::TestWithParam<const char*> {
 protected:
  const Algorithm* algorithm = find_algorithm(Collective::kAllToAll, GetParam());
};
INSTANTIATE_TEST_SUITE_P(Leaf, TotalExchangeRuns, ::testing::Values("leaf", "leaf-serial"),
                         [](const auto& test) {
                           return std::string(test.param) == "leaf" ? "Pipelined" : "Serial";
                         });

// Whether a machine holds as many messages per link as a branch of the tree has lanes; prints it
// otherwise.
bool machines_hold(const Tree& tree) {
  if (*std::max_element(tree.capacities.begin(), tree.capacities.end()) <= kMaxWindow) return true;
  std::printf("%s not run: more lanes than the %u messages that a machine holds per link\n",
              fat_trees::spec(tree).c_str(), kMaxWindow);
  return false;
}

TEST_P(TotalExchangeRuns, OnAnyCapacities) {
  ASSERT_NE(algorithm, nullptr);
  int runs = 0;
  for (const Tree& constant : fat_trees::all_trees(whole() ? 64 : 27, 6)) {
    const std::vector<Tree> all = fat_trees::with_capacities(constant);
    const std::size_t stride = std::max<std::size_t>(1, all.size() / 8);
    for (std::size_t at = (all.size() - 1) % stride; at < all.size(); at += stride) {
      if (!machines_hold(all[at])) continue;
      const Schedule schedule = schedule_of(*algorithm, all[at], 0);
      ASSERT_FALSE(schedule.programs.empty()) << schedule.name;
      prove(schedule);
      // Trees of one lane have run with more blocks above.
      run(schedule, {1, covering_blocks(schedule.programs[0])});
      if (HasFailure()) return;
      ++runs;
    }
  }
  std::printf("%d schedules run\n", runs);
}

// All trees of at most 256 leaves, whatever their arities and lanes; by default a sample.
// Leaf/TotalExchange.FitsTheTablesOfAnyTree (leaf_test.cc) compares the steps of all of them.
TEST_P(TotalExchangeRuns, OnAnyTree) {
  ASSERT_NE(algorithm, nullptr);
  std::size_t number = 0, proven = 0;
  for (const std::vector<std::uint32_t>& arities : fat_trees::arities_of_all(256)) {
    for (const Tree& tree : fat_trees::with_typical_lanes(arities)) {
      if (!sampled(number++, 512)) continue;
      const Schedule schedule = schedule_of(*algorithm, tree, 0);
      ASSERT_FALSE(schedule.programs.empty()) << schedule.name;
      prove(schedule);
      if (HasFailure()) return;
      ++proven;
    }
  }
  std::printf("%zu of %zu schedules proven for every N\n", proven, number);
}

// Trees of many levels, whose ranks have an action per message of the lowest stages, and of many
// branches: also run.
TEST_P(TotalExchangeRuns, OnLargeTrees) {
  ASSERT_NE(algorithm, nullptr);
  const std::vector<std::vector<std::uint32_t>> kTrees = {{2, 3, 2, 3, 2},
                                                          {3, 2, 3, 2, 3, 2},
                                                          {2, 3, 2, 3, 2, 3},
                                                          {2, 2, 2, 2, 2, 2, 2, 2},
                                                          {3, 3, 3, 3, 3},
                                                          {2, 2, 2, 2, 16},
                                                          {2, 2, 2, 2, 2, 2, 3},
                                                          {2, 3, 2, 5, 2, 2},
                                                          {5, 5, 5, 2},
                                                          {16, 3, 2},
                                                          {2, 128},
                                                          {127, 2}};
  for (std::size_t at = 0; at < (whole() ? kTrees.size() : 2); ++at) {
    for (const Tree& tree : fat_trees::with_typical_lanes(kTrees[at])) {
      const Schedule schedule = schedule_of(*algorithm, tree, 0);
      ASSERT_FALSE(schedule.programs.empty()) << schedule.name;
      prove(schedule);
      if (machines_hold(tree)) run(schedule, {1, 2});
      if (HasFailure()) return;
    }
  }
}

// Trees of more lanes than nodes count messages: 64 of a link in a step, 255 of a node.
TEST_P(TotalExchangeRuns, WithWhatNodesCount) {
  ASSERT_NE(algorithm, nullptr);
  for (const Tree& tree : std::vector<Tree>{{2, 1, {100}}, {2, 2, {40, 200}}, {16, 2, {1, 16}}}) {
    const auto topology = or_throw(topology::parse(fat_trees::spec(tree)));
    CollectiveParameters parameters = fat_trees::parameters_of(tree, 0);
    parameters.topology_digest = topology->digest();
    const std::string name = grid::name_of(*algorithm, *topology, parameters);
    const auto programs = grid::programs_of(*algorithm, parameters);
    EXPECT_TRUE(grid::verified(*topology, programs, 0, name).for_all) << name;
  }
}

TEST(Leaf, RunsUnderSkew) {
  for (const Tree& tree : {Tree{2, 3, {}}, Tree{0, 2, {}, {2, 3}}}) {
    for (const Algorithm& algorithm : fat_trees::leaf_algorithms()) {
      CollectiveParameters parameters = fat_trees::parameters_of(tree, 3);
      parameters.blocks = &kBlocks;
      parameters.blocks_count = 1;
      const Programs programs = grid::programs_of(algorithm, parameters);
      for (const std::uint32_t window : {1u, 3u, 8u}) {
        testing::JobCluster::Options options;
        options.model = testing::model_for(programs[0]);
        options.config.window = window;
        options.unwilling = true;
        testing::run_freely(programs, job_of(programs, 3), options);
        ASSERT_FALSE(HasFailure())
            << collective_name(algorithm.collective) << ' ' << algorithm.name;
      }
    }
  }
}

// The searched exchanges on trees with different arities; tests/grid/exchange_test.cc has the
// others, and `leaf-single` on larger trees. A single port takes the steps of the paper's queues.
// If levels overlap, the messages that cross a branch of the root are the minimum.
TEST(Leaf, SearchedExchangesTakeTheLeastSteps) {
  for (const Tree& tree :
       fat_trees::sample(fat_trees::unequal_trees(whole() ? 64 : 24), whole() ? 64 : 10)) {
    const auto topology = or_throw(topology::parse(fat_trees::spec(tree)));
    CollectiveParameters parameters = fat_trees::parameters_of(tree, 0);
    parameters.topology_digest = topology->digest();
    parameters.blocks = &kBlocks;
    parameters.blocks_count = 1;
    const std::int64_t branch = fat_trees::leaves(tree, tree.height - 1);
    const std::int64_t crossing = branch * (parameters.ranks - branch) + 2 * tree.height - 1;
    for (const auto& [name, steps] :
         {std::pair{"leaf-overlapped", crossing},
          std::pair{"leaf-single", cost::single_port_total_exchange(tree.arities).steps}}) {
      const std::string what = name + (" on " + topology->spec());
      const searched::SearchedAlgorithm* algorithm =
          searched::find_searched(Collective::kAllToAll, name);
      const Programs programs = or_throw(algorithm->search(*topology, parameters));
      EXPECT_EQ(phase_steps(programs[0], 1), steps) << what;
      EXPECT_EQ(count_value(programs[0].counts[programs[0].bound_ref], 1), steps) << what;
      const std::int64_t most = parameters.ranks <= 16 ? 3 : 2;
      EXPECT_TRUE(grid::verified(*topology, programs, most, what).async);
      const sim::Model model =
          testing::model_for(programs[0], [](std::uint32_t, std::uint32_t) { return 1u; });
      const sim::RunResult result =
          testing::run_in_lock_step(programs, job_of(programs, most), model);
      EXPECT_EQ(result.steps, phase_steps(programs[0], most)) << what;
      if (HasFailure()) return;
    }
  }
}

// Allgather of one send per node and step on trees with different arities, with the steps of the
// paper's queues for the first block, and fewer for each further one.
TEST(Leaf, SinglePortAllgatherTakesTheLeastSteps) {
  const searched::SearchedAlgorithm* algorithm =
      searched::find_searched(Collective::kAllgather, "leaf-single");
  std::vector<Tree> trees =
      fat_trees::sample(fat_trees::unequal_trees(whole() ? 256 : 48), whole() ? 1000 : 20);
  trees.push_back({0, 2, {}, {2, 12}});
  trees.push_back({0, 2, {}, {12, 2}});
  if (whole()) {
    for (const std::uint32_t arity : {32u, 64u, 127u}) {
      trees.push_back({0, 2, {}, {2, arity}});
      trees.push_back({0, 2, {}, {arity, 2}});
    }
    trees.push_back({0, 2, {}, {2, 128}});
    trees.push_back({0, 3, {}, {2, 64, 2}});
  }
  for (const Tree& tree : trees) {
    const auto topology = or_throw(topology::parse(fat_trees::spec(tree)));
    CollectiveParameters parameters = fat_trees::parameters_of(tree, 0);
    parameters.topology_digest = topology->digest();
    parameters.blocks = &kBlocks;
    parameters.blocks_count = 1;
    const std::string what = "leaf-single on " + topology->spec();
    const Programs programs = or_throw(algorithm->search(*topology, parameters));
    const std::int64_t steps = phase_steps(programs[0], 1);
    EXPECT_EQ(steps, cost::single_port_multinode_broadcast(tree.arities).steps) << what;
    const Count& bound = programs[0].counts[programs[0].bound_ref];
    EXPECT_LE(count_value(bound, 1), steps) << what;
    EXPECT_LT(phase_steps(programs[0], 2) - steps, steps) << what;
    const std::int64_t most = parameters.ranks <= 16 ? 3 : 1;
    EXPECT_TRUE(grid::verified(*topology, programs, most, what).async) << what;
    const sim::RunResult result = testing::run_in_lock_step(
        programs, job_of(programs, most),
        testing::model_for(programs[0], [](std::uint32_t, std::uint32_t) { return 1u; }));
    EXPECT_EQ(result.steps, phase_steps(programs[0], most)) << what;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace espalier

// Leaf communications on fat trees [DD96]: verified, and run on simulated machines in the steps
// that they claim, with the reference's results. By default a sample of the trees; with
// ESPALIER_WHOLE=1 (some minutes) all of them, and N up to 20.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/results.h"
#include "collectives/cost/leaf_queues.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "espalier/collectives/algorithms/searched.h"
#include "tests/fat_tree/leaf_replay.h"
#include "tests/fat_tree/trees.h"
#include "tests/grid/grid.h"

namespace espalier {
namespace {

using leaf_replay::Tree;

constexpr BlockRule kBlocks = {0, 64};

// Messages that leave one node in a round. They limit the number of blocks to try.
std::int64_t load(const Algorithm& algorithm, std::int64_t ranks) {
  if (algorithm.collective == Collective::kBroadcast) return 1;
  return algorithm.collective == Collective::kAllToAll ? ranks * ranks : ranks;
}

std::vector<std::int64_t> blocks_to_try(const Algorithm& algorithm, std::uint32_t ranks) {
  const std::int64_t most = whole() ? 1 << 17 : ranks > 64 ? 1 << 8 : 1 << 10;
  std::vector<std::int64_t> tried;
  for (const std::int64_t blocks : {1, 2, 3, 7, 20}) {
    if (blocks == 1 || blocks * load(algorithm, ranks) <= most) tried.push_back(blocks);
  }
  return tried;
}

testing::Job job_of(const Programs& programs, std::int64_t blocks) {
  testing::Job job;
  job.root = programs[0].root;
  job.op.op = Op::kSum;
  job.op.type = Type::kI32;
  job.count = testing::count_of_blocks(programs[0], job.op, static_cast<std::uint64_t>(blocks), 5);
  return job;
}

void verify_and_run(const Algorithm& algorithm, const Tree& tree, std::uint32_t root) {
  const auto topology = or_throw(topology::parse(leaf_replay::spec(tree)));
  CollectiveParameters parameters = leaf_replay::parameters_of(tree, root);
  parameters.topology_digest = topology->digest();
  parameters.blocks = &kBlocks;
  parameters.blocks_count = 1;
  const Programs programs = grid::programs_of(algorithm, parameters);
  ASSERT_FALSE(programs.empty());
  const std::string name = grid::name_of(algorithm, *topology, parameters);
  const std::vector<std::int64_t> tried = blocks_to_try(algorithm, parameters.ranks);
  EXPECT_TRUE(grid::verified(*topology, programs, tried.back(), name).async);
  const sim::Model model = testing::model_for(
      programs[0],
      [&](std::uint32_t from, std::uint32_t to) { return topology->capacity(from, to); });
  for (const std::int64_t blocks : tried) {
    const sim::RunResult result =
        testing::run_in_lock_step(programs, job_of(programs, blocks), model);
    EXPECT_EQ(result.steps, phase_steps(programs[0], blocks)) << name << ", N " << blocks;
    ASSERT_FALSE(::testing::Test::HasFailure()) << name << ", N " << blocks;
  }
}

TEST(Leaf, IsVerifiedAndRuns) {
  for (const Tree& tree : leaf_replay::all_trees(whole() ? 256 : 125, 16)) {
    const auto ranks = static_cast<std::uint32_t>(leaf_replay::leaves(tree, tree.height));
    for (const Algorithm& algorithm : leaf_replay::leaf_algorithms()) {
      // An allgather without queues is new, so it is always checked for all of these trees.
      const bool always = algorithm.collective == Collective::kAllgather;
      if (ranks > 64 && !always && !whole()) continue;
      std::set<std::uint32_t> roots = {0};
      if (leaf_replay::is_rooted(algorithm)) roots.insert({1, ranks - 1});
      for (const std::uint32_t root : roots) {
        verify_and_run(algorithm, tree, root);
        if (HasFailure()) return;
      }
    }
  }
}

class TotalExchangeRuns : public ::testing::TestWithParam<const char*> {
 protected:
  const Algorithm* algorithm = find_algorithm(Collective::kAllToAll, GetParam());
};
INSTANTIATE_TEST_SUITE_P(Leaf, TotalExchangeRuns, ::testing::Values("leaf", "leaf-serial"),
                         [](const auto& test) {
                           return std::string(test.param) == "leaf" ? "Pipelined" : "Serial";
                         });

TEST_P(TotalExchangeRuns, OnAnyCapacities) {
  ASSERT_NE(algorithm, nullptr);
  for (const Tree& constant : leaf_replay::all_trees(whole() ? 64 : 27, 6)) {
    const std::vector<Tree> all = leaf_replay::with_capacities(constant);
    const std::size_t stride = std::max<std::size_t>(1, all.size() / 8);
    for (std::size_t at = (all.size() - 1) % stride; at < all.size(); at += stride) {
      if (all[at].capacities.back() > kMaxWindow) {
        std::printf("%s not run: more lanes than the %u messages that a machine holds a link\n",
                    leaf_replay::spec(all[at]).c_str(), kMaxWindow);
        continue;
      }
      verify_and_run(*algorithm, all[at], 0);
      if (HasFailure()) return;
    }
  }
}

// Trees of more lanes than nodes count messages: 64 of a link in a step, 255 of a node.
TEST_P(TotalExchangeRuns, WithWhatNodesCount) {
  ASSERT_NE(algorithm, nullptr);
  for (const Tree& tree : std::vector<Tree>{{2, 1, {100}}, {2, 2, {40, 200}}, {16, 2, {1, 16}}}) {
    const auto topology = or_throw(topology::parse(leaf_replay::spec(tree)));
    CollectiveParameters parameters = leaf_replay::parameters_of(tree, 0);
    parameters.topology_digest = topology->digest();
    const std::string name = grid::name_of(*algorithm, *topology, parameters);
    const auto programs = grid::programs_of(*algorithm, parameters);
    EXPECT_TRUE(grid::verified(*topology, programs, 0, name).for_all) << name;
  }
}

// Rooted algorithms have no pace, so they are proven for every N at once.
TEST(Leaf, IsProvenForEveryN) {
  for (const Tree& tree : leaf_replay::all_trees(9, 9)) {
    const auto topology = or_throw(topology::parse(leaf_replay::spec(tree)));
    for (const Algorithm& algorithm : leaf_replay::leaf_algorithms()) {
      if (!leaf_replay::is_rooted(algorithm)) continue;
      CollectiveParameters parameters = leaf_replay::parameters_of(tree, 1);
      parameters.topology_digest = topology->digest();
      const std::string name = grid::name_of(algorithm, *topology, parameters);
      const auto programs = grid::programs_of(algorithm, parameters);
      const verify::Verdict verdict = grid::verified(*topology, programs, 0, name);
      EXPECT_TRUE(verdict.for_all) << name << ": " << verdict.limited;
    }
  }
}

TEST(Leaf, RunsUnderSkew) {
  for (const Tree& tree : {Tree{2, 3, {}}, Tree{0, 2, {}, {2, 3}}}) {
    for (const Algorithm& algorithm : leaf_replay::leaf_algorithms()) {
      CollectiveParameters parameters = leaf_replay::parameters_of(tree, 3);
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
// others. A single port takes the steps of the paper's queues. If levels overlap, the messages that
// cross a branch of the root are the minimum.
TEST(Leaf, SearchedExchangesTakeTheLeastSteps) {
  for (const Tree& tree :
       leaf_replay::sample(leaf_replay::unequal_trees(whole() ? 64 : 24), whole() ? 64 : 10)) {
    const auto topology = or_throw(topology::parse(leaf_replay::spec(tree)));
    CollectiveParameters parameters = leaf_replay::parameters_of(tree, 0);
    parameters.topology_digest = topology->digest();
    parameters.blocks = &kBlocks;
    parameters.blocks_count = 1;
    const std::int64_t branch = leaf_replay::leaves(tree, tree.height - 1);
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
// paper's queues. Each further block takes the sends of the busiest node.
TEST(Leaf, SinglePortAllgatherTakesTheLeastSteps) {
  const searched::SearchedAlgorithm* algorithm =
      searched::find_searched(Collective::kAllgather, "leaf-single");
  std::vector<Tree> trees =
      leaf_replay::sample(leaf_replay::unequal_trees(whole() ? 256 : 48), whole() ? 1000 : 20);
  trees.push_back({0, 2, {}, {2, 12}});
  trees.push_back({0, 2, {}, {12, 2}});
  if (whole()) {
    for (const std::uint32_t arity : {32u, 64u, 128u}) {
      trees.push_back({0, 2, {}, {2, arity}});
      trees.push_back({0, 2, {}, {arity, 2}});
    }
  }
  for (const Tree& tree : trees) {
    const auto topology = or_throw(topology::parse(leaf_replay::spec(tree)));
    CollectiveParameters parameters = leaf_replay::parameters_of(tree, 0);
    parameters.topology_digest = topology->digest();
    parameters.blocks = &kBlocks;
    parameters.blocks_count = 1;
    const std::string what = "leaf-single on " + topology->spec();
    const Programs programs = or_throw(algorithm->search(*topology, parameters));
    const std::int64_t steps = phase_steps(programs[0], 1);
    EXPECT_EQ(steps, cost::single_port_multinode_broadcast(tree.arities).steps) << what;
    const Count& bound = programs[0].counts[programs[0].bound_ref];
    EXPECT_LE(count_value(bound, 1), steps) << what;
    EXPECT_EQ(phase_steps(programs[0], 2) - steps, count_value(bound, 2) - count_value(bound, 1))
        << what;
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

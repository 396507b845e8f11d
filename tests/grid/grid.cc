#include "tests/grid/grid.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/results.h"
#include "collectives/machine/affine.h"
#include "collectives/schedule/selection.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "collectives/verify/testing/verdict_of.h"

namespace espalier::grid {

std::string name_of(const Algorithm& algorithm, const topology::Topology& topology,
                    const CollectiveParameters& parameters) {
  return std::string(collective_name(algorithm.collective)) + " " + algorithm.name + " on " +
         topology.title() + ", root " + std::to_string(parameters.root) + ", lambda " +
         std::to_string(parameters.latency_ticks) + "/" + std::to_string(parameters.send_ticks);
}

verify::Verdict verified(const topology::Topology& topology, const Programs& programs,
                         std::int64_t max_blocks, const std::string& name) {
  verify::Verdict verdict = verify::verdict_of(topology, programs, {.max_blocks = max_blocks});
  EXPECT_TRUE(verdict.valid) << name << ": " << verdict.counterexample.message;
  return verdict;
}

namespace {

// Runs the job with another count for each rank, the largest of them as before. Only an all-to-all
// that passes parts on may refuse that, recursive halving, whose parts change their order, and what
// has more groups of slots than a program: a reduce-scatter by bucket over many rows.
void run_unequal(const Programs& programs, testing::Job job, std::int64_t claimed,
                 const std::string& name) {
  SlotGroups groups;
  for (const Program& program : programs) {
    if (takes_unequal_counts(program, groups)) continue;
    const std::string algorithm = program.algorithm;
    ASSERT_TRUE(program.collective == Collective::kAllToAll || algorithm == "recursive-halving" ||
                (algorithm == "bucket" && groups.count == SlotGroups::kMax))
        << name << ", node " << program.node;
    return;
  }
  const std::uint64_t entries = unequal_entries(programs[0].collective, programs[0].ranks);
  for (std::uint64_t k = 0; k < entries; ++k) job.counts.push_back(job.count * (k * 7 % 5) / 4);
  job.counts[entries / 2] = job.count;
  const sim::RunResult result =
      testing::run_in_lock_step(programs, job, testing::model_for(programs[0]));
  // An all-to-all leaves out its empty blocks, which may be those of the last steps.
  if (programs[0].collective == Collective::kAllToAll) {
    ASSERT_LE(result.steps, claimed) << name << ", a count for each rank";
  } else {
    ASSERT_EQ(result.steps, claimed) << name << ", a count for each rank";
  }
}

// One that does not commute, if the schedule keeps the order of ranks: its results show the order.
Operator operator_for(const Programs& programs) {
  const bool keeps_order =
      combines_operands(programs[0].collective) &&
      std::none_of(programs.begin(), programs.end(),
                   [](const Program& program) { return program.needs_commutative; });
  if (keeps_order) return affine();
  return {.op = Op::kSum, .type = Type::kI32};
}

}  // namespace

void run(const Programs& programs, const CollectiveParameters& parameters, std::int64_t blocks,
         const std::string& name) {
  testing::Job job{.root = parameters.root, .op = operator_for(programs)};
  job.count = testing::count_of_blocks(programs[0], job.op, static_cast<std::uint64_t>(blocks), 5);
  const sim::RunResult result =
      testing::run_in_lock_step(programs, job, testing::model_for(programs[0]));
  Layout layout;
  ASSERT_EQ(make_layout(programs[0], job.count, element_bytes(job.op), layout), Status::kOk)
      << name;
  // A single rank may copy, but no block moves.
  const std::int64_t claimed =
      programs.size() == 1 ? 0
                           : count_value(programs[0].counts[programs[0].steps_ref], layout.blocks);
  ASSERT_EQ(result.steps, claimed) << name << ", N " << layout.blocks;
  if (counts_per_rank(programs[0].collective)) run_unequal(programs, job, claimed, name);
  ASSERT_FALSE(::testing::Test::HasFailure()) << name << ", N " << layout.blocks;
}

}  // namespace espalier::grid

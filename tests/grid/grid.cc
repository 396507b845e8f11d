#include "tests/grid/grid.h"

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "collectives/simulation/testing/job_cluster.h"

namespace espalier::grid {

std::string name_of(const Algorithm& algorithm, const topology::Topology& topology,
                    const CollectiveParameters& parameters) {
  return std::string(collective_name(algorithm.collective)) + " " + algorithm.name + " on " +
         topology.title() + ", root " + std::to_string(parameters.root) + ", lambda " +
         std::to_string(parameters.latency_ticks) + "/" + std::to_string(parameters.send_ticks);
}

verify::Verdict verified(const topology::Topology& topology, const Programs& programs,
                         std::int64_t max_blocks, const std::string& name) {
  verify::VerifyOptions options;
  options.max_blocks = max_blocks;
  verify::Verdict verdict = verify::verify(
      topology, [&](std::uint32_t node) -> const Program& { return programs[node]; }, options);
  EXPECT_TRUE(verdict.valid) << name << ": " << verdict.counterexample.message;
  return verdict;
}

void run(const Programs& programs, const CollectiveParameters& parameters, std::int64_t blocks,
         const std::string& name) {
  testing::Job job;
  job.root = parameters.root;
  job.op.op = Op::kSum;
  job.op.type = Type::kI32;
  job.count = testing::count_of_blocks(programs[0], job.op, static_cast<std::uint64_t>(blocks), 5);
  const sim::RunResult result =
      testing::run_in_lock_step(programs, job, testing::model_for(programs[0]));
  Layout layout;
  ASSERT_EQ(make_layout(programs[0], job.count, 4, layout), Status::kOk) << name;
  // A single rank may copy, but no block moves.
  const std::int64_t claimed =
      programs.size() == 1 ? 0
                           : count_value(programs[0].counts[programs[0].steps_ref], layout.blocks);
  ASSERT_EQ(result.steps, claimed) << name << ", N " << layout.blocks;
  ASSERT_FALSE(::testing::Test::HasFailure()) << name << ", N " << layout.blocks;
}

}  // namespace espalier::grid

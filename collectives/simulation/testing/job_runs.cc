#include <gtest/gtest.h>

#include "collectives/simulation/testing/job_cluster.h"

namespace espalier::testing {

Programs programs_of(const Algorithm& algorithm, const CollectiveParameters& parameters) {
  Programs programs(algorithm_nodes(algorithm, parameters));
  for (std::uint32_t v = 0; v < programs.size(); ++v) {
    const Status status = algorithm.generate(parameters, v, programs[v]);
    // All nodes refuse alike.
    if (v == 0 && (status == Status::kUnsupported || status == Status::kTooLarge)) return {};
    EXPECT_EQ(status, Status::kOk) << algorithm.name << " p " << parameters.ranks << " node " << v;
    if (status != Status::kOk) return {};
  }
  return programs;
}

sim::Model model_for(const Program& program,
                     const std::function<std::uint32_t(std::uint32_t, std::uint32_t)>& lanes) {
  sim::Model model;
  model.one_port =
      program.port_model == PortModel::kOnePortDuplex || program.port_model == PortModel::kSimplex;
  model.lanes = lanes;
  model.poison = true;
  return model;
}

std::uint64_t count_of_blocks(const Program& program, const Operator& op, std::uint64_t blocks,
                              std::uint64_t missing) {
  if (program.collective == Collective::kBarrier) return 0;
  const std::uint64_t bytes = program.blocks[0].block_bytes;
  const std::uint64_t block = bytes == 0 ? 16 : bytes / element_bytes(op);
  const std::uint64_t segments = counts_per_rank(program.collective) ? 1 : program.segments;
  return segments * block * blocks - missing;
}

Job sum_job(const Programs& programs, std::uint32_t root, std::uint64_t count) {
  Job job{.collective = programs[0].collective,
          .programs = &programs,
          .root = root,
          .count = count,
          .op = {.op = Op::kSum, .type = Type::kI32}};
  if (job.collective == Collective::kBarrier) job.op = Operator();
  return job;
}

Job sum_job(const Programs& programs, std::uint32_t root, std::uint64_t blocks,
            std::uint64_t missing) {
  Job job = sum_job(programs, root, 0);
  job.count = count_of_blocks(programs[0], job.op, blocks, missing);
  return job;
}

sim::RunResult run_in_lock_step(const Programs& programs, Job job, const sim::Model& model) {
  job.collective = programs[0].collective;
  job.programs = &programs;
  JobCluster::Options options;
  options.model = model;
  JobCluster cluster(programs, options);
  cluster.start_all(job);
  const sim::RunResult result = cluster.run_lock_step();
  const std::string where = programs[0].algorithm + (" " + describe(job, cluster.ranks()));
  EXPECT_EQ(result.status, Status::kOk) << where << ": " << result.message;
  if (result.status != Status::kOk) return result;
  cluster.drive();
  for (std::uint32_t v = 0; v < cluster.nodes(); ++v) {
    EXPECT_EQ(cluster.done(v), 1u)
        << where << " node " << v << " " << status_name(cluster.status(v));
  }
  return result;
}

void run_freely(const Programs& programs, Job job, const JobCluster::Options& options,
                std::uint32_t times) {
  job.collective = programs[0].collective;
  job.programs = &programs;
  std::vector<Job> jobs;
  for (; jobs.size() < times; ++job.seed) jobs.push_back(job);
  JobCluster cluster(programs, options);
  cluster.give_all(jobs);
  cluster.drive();
  for (std::uint32_t v = 0; v < cluster.nodes(); ++v) {
    EXPECT_EQ(cluster.status(v), Status::kOk) << describe(job, cluster.ranks()) << " node " << v;
    EXPECT_EQ(cluster.done(v), times) << describe(job, cluster.ranks()) << " node " << v;
  }
}

}  // namespace espalier::testing

// Right results: every operator, window, size, in place, in lock step and under drift.

#include <gtest/gtest.h>

#include <cstring>

#include "collectives/machine/simulated/cluster.h"

namespace espalier::testing {
namespace {

Operator operator_of(Op op, Type type) {
  Operator result;
  result.op = op;
  result.type = type;
  return result;
}

// All algorithms of the table, with the operator where they reduce.
std::vector<Job> jobs_of_all_algorithms(const Operator& op) {
  std::vector<Job> jobs;
  std::uint32_t count = 0;
  const Algorithm* table = algorithms(count);
  for (std::uint32_t at = 0; at < count; ++at) {
    if (table[at].where != Where::kAnywhere) continue;
    Job job;
    job.collective = table[at].collective;
    job.algorithm = table[at].name;
    job.op = op;
    jobs.push_back(job);
  }
  return jobs;
}

bool supports(const Job& job, std::uint32_t ranks) {
  return std::strcmp(job.algorithm, "two-tree-mirror") != 0 || ranks % 2 == 1;
}

Cluster::Options options_of(std::uint32_t window, unsigned seed) {
  Cluster::Options options;
  options.model.scramble = true;
  options.model.eager_bytes = 100;
  options.model.jitter = seed % 2 == 0 ? 3.0 : 0.0;
  options.model.one_port = seed % 3 != 0;
  options.model.eager_copies = seed % 5 != 0;
  options.model.seed = seed;
  options.config.window = window;
  options.config.check_blocks = seed % 4 == 0;
  options.unwilling = seed % 3 == 1;
  return options;
}

void run_jobs(std::uint32_t ranks, const Cluster::Options& options, const std::vector<Job>& jobs) {
  Cluster cluster(ranks, options);
  cluster.give_all(jobs);
  cluster.drive();
  for (std::uint32_t v = 0; v < ranks; ++v) {
    ASSERT_EQ(cluster.status(v), Status::kOk) << describe(jobs[cluster.done(v)], ranks);
    ASSERT_EQ(cluster.done(v), jobs.size());
  }
}

TEST(Results, EveryOperatorAndType) {
  std::vector<Job> jobs;
  for (int type = 0; type <= 16; ++type) {
    for (int op = 1; op <= 9; ++op) {
      const Operator oper = operator_of(static_cast<Op>(op), static_cast<Type>(type));
      if (combine_function(oper) == nullptr) continue;
      for (Job job : jobs_of_all_algorithms(oper)) {
        if (!supports(job, 7)) continue;
        job.count = 101;
        job.root = static_cast<std::uint32_t>(op) % 7;
        job.seed = static_cast<unsigned>(100 * type + op);
        jobs.push_back(job);
      }
    }
  }
  run_jobs(7, options_of(4, 7), jobs);
}

TEST(Results, EveryWindowAndSize) {
  const std::uint64_t counts[] = {0, 1, 2, 3, 5, 15, 16, 17, 63, 100, 333, 1001};
  unsigned seed = 1;
  for (std::uint32_t window = 1; window <= 16; ++window) {
    for (const std::uint32_t ranks : {1u, 2u, 3u, 6u, 9u}) {
      std::vector<Job> jobs;
      for (const std::uint64_t count : counts) {
        for (Job job : jobs_of_all_algorithms(operator_of(Op::kSum, Type::kI32))) {
          if (!supports(job, ranks)) continue;
          job.count = count;
          job.root = static_cast<std::uint32_t>(count) % ranks;
          job.window = 1 + (seed * 7) % 16;
          job.seed = ++seed;
          jobs.push_back(job);
        }
      }
      run_jobs(ranks, options_of(window, seed), jobs);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Results, LockStepToo) {
  for (const std::uint32_t ranks : {2u, 5u, 8u, 13u}) {
    for (Job job : jobs_of_all_algorithms(operator_of(Op::kSum, Type::kF32))) {
      if (!supports(job, ranks)) continue;
      job.count = 500;
      job.root = ranks - 1;
      Cluster::Options options = options_of(16, 3);
      options.model.one_port = true;
      options.unwilling = false;
      Cluster cluster(ranks, options);
      cluster.give_all({job});
      cluster.start_all();
      std::vector<Machine*> machines;
      for (std::uint32_t v = 0; v < ranks; ++v) machines.push_back(&cluster.machine(v));
      const sim::RunResult result = sim::run_lock_step(cluster.network(), machines);
      ASSERT_EQ(result.status, Status::kOk) << describe(job, ranks) << ": " << result.message;
      cluster.drive();
      for (std::uint32_t v = 0; v < ranks; ++v) ASSERT_EQ(cluster.done(v), 1u);
    }
  }
}

TEST(Results, InPlace) {
  for (const std::uint32_t ranks : {1u, 2u, 5u, 8u}) {
    std::vector<Job> jobs;
    for (Job job : jobs_of_all_algorithms(operator_of(Op::kMax, Type::kU16))) {
      if (!supports(job, ranks)) continue;
      job.count = 777;
      job.root = ranks - 1;
      job.in_place = true;
      jobs.push_back(job);
    }
    run_jobs(ranks, options_of(8, 10 + ranks), jobs);
  }
}

// Nothing separates one collective from the next: ranks run ahead of others as far as the window
// and the eager slots let them.
TEST(Results, ThousandsBackToBackOfMixedSizes) {
  for (const unsigned seed : {2u, 3u, 4u, 5u}) {
    std::mt19937 random(seed);
    const std::uint32_t ranks = 3 + 2 * seed;
    std::vector<Job> jobs;
    while (jobs.size() < 2500) {
      for (Job job : jobs_of_all_algorithms(operator_of(Op::kXor, Type::kU32))) {
        if (!supports(job, ranks) || random() % 3 == 0) continue;
        constexpr std::uint64_t kCounts[] = {0, 1, 2, 7, 8, 40, 41, 300};
        job.count = kCounts[random() % 8];
        job.root = random() % 2 == 0 ? 0 : random() % 3;
        job.window = 1 + random() % 16;
        job.block_bytes = random() % 3 == 0 ? 0 : 64;
        job.in_place = random() % 2 == 0;
        job.seed = static_cast<unsigned>(jobs.size());
        jobs.push_back(job);
      }
    }
    run_jobs(ranks, options_of(1 + seed * 3, seed), jobs);
    if (HasFatalFailure()) return;
  }
}

// The 2x2 integer matrix product, which does not commute.
struct Matrix {
  std::uint64_t x[4];
};

void multiply(void* into, const void* a, const void* b, std::uint64_t count, void*) {
  for (std::uint64_t i = 0; i < count; ++i) {
    Matrix left, right;
    std::memcpy(&left, static_cast<const Matrix*>(a) + i, sizeof left);
    std::memcpy(&right, static_cast<const Matrix*>(b) + i, sizeof right);
    Matrix product;
    for (int row = 0; row < 2; ++row) {
      for (int column = 0; column < 2; ++column) {
        product.x[2 * row + column] =
            left.x[2 * row] * right.x[column] + left.x[2 * row + 1] * right.x[2 + column];
      }
    }
    std::memcpy(static_cast<Matrix*>(into) + i, &product, sizeof product);
  }
}

TEST(Results, ReduceOfMatricesIsInRankOrder) {
  Operator op;
  op.op = Op::kCustom;
  op.type = Type::kCustom;
  op.element_bytes = sizeof(Matrix);
  op.commutes = false;
  op.custom = multiply;
  op.custom_id = 22;
  for (std::uint32_t ranks = 1; ranks <= 40; ++ranks) {
    for (const char* algorithm : {"chain", "two-tree"}) {
      for (const std::uint32_t root : {0u, ranks - 1}) {
        Job job;
        job.collective = espalier_Collective_REDUCE;
        job.algorithm = algorithm;
        job.op = op;
        job.root = root;
        job.count = 11;
        job.seed = ranks;
        run_jobs(ranks, options_of(8, ranks + root), {job, job});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Results, AllreduceOfMatricesIsInRankOrder) {
  Operator op;
  op.op = Op::kCustom;
  op.type = Type::kCustom;
  op.element_bytes = sizeof(Matrix);
  op.commutes = false;
  op.custom = multiply;
  for (std::uint32_t ranks = 1; ranks <= 16; ++ranks) {
    for (const char* algorithm : {"chain", "two-tree"}) {
      Job job;
      job.collective = espalier_Collective_ALLREDUCE;
      job.algorithm = algorithm;
      job.op = op;
      job.count = 20;
      run_jobs(ranks, options_of(8, ranks), {job});
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace espalier::testing

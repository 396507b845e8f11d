// Correct results for every operator, window and size, in place and with timing skew.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "collectives/simulation/testing/job_cluster.h"
#include "tests/whole.h"

namespace espalier::testing {
namespace {

Operator operator_of(Op op, Type type) { return {.op = op, .type = type}; }

// Algorithms that write an output before they have read all input at the same address.
bool in_place(const Job& job) {
  return job.collective != Collective::kAllToAll &&
         (job.collective != Collective::kExscan || std::strcmp(job.algorithm, "chain") == 0);
}

CollectiveParameters parameters_of(const Job& job, std::uint32_t ranks) {
  return {.ranks = ranks,
          .root = job.root,
          .run_length = job.run_length,
          .send_ticks = job.send_ticks,
          .latency_ticks = job.latency_ticks};
}

// All algorithms for any topology, with the operator if they reduce. Fractional trees have r = 2;
// algorithms of the postal model have lambda = 1, 3 and 3/2.
std::vector<Job> jobs_of_all_algorithms(const Operator& op) {
  std::vector<Job> jobs;
  for (const Algorithm& one : algorithms()) {
    if (one.where != Where::kAnywhere) continue;
    Job job{.collective = one.collective, .algorithm = one.name, .op = op};
    if (std::strstr(job.algorithm, "fractional") != nullptr) job.run_length = 2;
    jobs.push_back(job);
    Program program;
    job.send_ticks = 2;
    for (const std::uint32_t latency : {6u, 3u}) {
      job.latency_ticks = latency;
      const Status status = one.generate(parameters_of(job, 5), 0, program);
      if (status == Status::kOk && program.latency_ticks > 1) jobs.push_back(job);
    }
  }
  return jobs;
}

bool supports(const Job& job, std::uint32_t ranks) {
  const Algorithm* algorithm = find_algorithm(job.collective, job.algorithm);
  Program program;
  return algorithm->generate(parameters_of(job, ranks), 0, program) != Status::kUnsupported;
}

// Returns the jobs that this group can do with that number of elements, on machines with that
// window.
void add(std::vector<Job>& jobs, Job job, std::uint32_t ranks, std::uint32_t window,
         std::uint64_t count) {
  if (job.latency_ticks > window || !supports(job, ranks)) return;
  job.count = job.collective == Collective::kBarrier ? 0 : count;
  jobs.push_back(job);
}

JobCluster::Options window_options(std::uint32_t window, unsigned seed) {
  JobCluster::Options options;
  options.model.poison = true;
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

void run_jobs(std::uint32_t ranks, const JobCluster::Options& options,
              const std::vector<Job>& jobs) {
  JobCluster cluster(ranks, options);
  cluster.give_all(jobs);
  cluster.drive();
  for (std::uint32_t v = 0; v < ranks; ++v) {
    ASSERT_EQ(cluster.status(v), Status::kOk) << describe(jobs[cluster.done(v)], ranks);
    ASSERT_EQ(cluster.done(v), jobs.size());
  }
}

TEST(Results, EveryOperatorAndType) {
  std::vector<Job> jobs, others;
  for (int type = 0; type <= 16; ++type) {
    for (int op = 1; op <= 9; ++op) {
      const Operator oper = operator_of(static_cast<Op>(op), static_cast<Type>(type));
      if (!can_combine(oper)) continue;
      // In the small sample every third algorithm, other ones for the next operator.
      auto turn = static_cast<std::uint64_t>(type + op);
      for (Job job : jobs_of_all_algorithms(oper)) {
        job.root = static_cast<std::uint32_t>(op) % 7;
        job.seed = static_cast<unsigned>(100 * type + op);
        const bool runs = !small_sample() || sampled(turn++, 3);
        add(runs ? jobs : others, job, 7, 4, 101);
      }
    }
  }
  std::printf("  %zu of %zu jobs\n", jobs.size(), jobs.size() + others.size());
  run_jobs(7, window_options(4, 7), jobs);
}

TEST(Results, EveryWindowAndSize) {
  const std::uint64_t counts[] = {0, 1, 2, 3, 5, 15, 16, 17, 63, 100, 333, 1001};
  unsigned seed = 1;
  std::size_t run = 0;
  std::vector<Job> others;
  for (std::uint32_t window = 1; window <= 16; window += small_sample() ? 4 : 1) {
    for (const std::uint32_t ranks : {1u, 2u, 3u, 6u, 9u}) {
      std::vector<Job> jobs;
      for (std::size_t c = 0; c < std::size(counts); ++c) {
        const std::uint64_t count = counts[c];
        // In the small sample every second algorithm, the other half with the next count.
        std::uint64_t turn = c;
        for (Job job : jobs_of_all_algorithms(operator_of(Op::kSum, Type::kI32))) {
          job.root = static_cast<std::uint32_t>(count) % ranks;
          job.window = 1 + (seed * 7) % 16;
          job.seed = ++seed;
          const bool runs = !small_sample() || sampled(turn++, 2);
          add(runs ? jobs : others, job, ranks, window, count);
        }
      }
      run += jobs.size();
      run_jobs(ranks, window_options(window, seed), jobs);
      if (HasFatalFailure()) return;
    }
  }
  std::printf("  %zu of %zu jobs with %d of 16 windows\n", run, run + others.size(),
              small_sample() ? 4 : 16);
}

TEST(Results, InPlace) {
  for (const std::uint32_t ranks : {1u, 2u, 5u, 8u}) {
    std::vector<Job> jobs;
    for (Job job : jobs_of_all_algorithms(operator_of(Op::kMax, Type::kU16))) {
      job.root = ranks - 1;
      job.in_place = true;
      if (in_place(job)) add(jobs, job, ranks, 8, 777);
    }
    run_jobs(ranks, window_options(8, 10 + ranks), jobs);
  }
}

// Nothing separates one collective from the next. Ranks run ahead of others as far as the window
// and the eager slots allow.
TEST(Results, ThousandsBackToBackOfMixedSizes) {
  for (const unsigned seed : {2u, 3u, 4u, 5u}) {
    std::mt19937 random(seed);
    const std::uint32_t ranks = 3 + 2 * seed;
    std::vector<Job> jobs;
    while (jobs.size() < (small_sample() ? 400 : 2500)) {
      for (Job job : jobs_of_all_algorithms(operator_of(Op::kXor, Type::kU32))) {
        if (random() % 3 == 0) continue;
        constexpr std::uint64_t kCounts[] = {0, 1, 2, 7, 8, 40, 41, 300};
        const std::uint64_t count = kCounts[random() % 8];
        job.root = random() % 2 == 0 ? 0 : random() % 3;
        job.window = 1 + random() % 16;
        job.block_bytes = random() % 3 == 0 ? 0 : 64;
        job.in_place = random() % 2 == 0 && in_place(job);
        job.seed = static_cast<unsigned>(jobs.size());
        add(jobs, job, ranks, 1 + seed * 3, count);
      }
    }
    run_jobs(ranks, window_options(1 + seed * 3, seed), jobs);
    if (HasFatalFailure()) return;
  }
}

// No rank ends before the last rank has begun.
TEST(Results, ABarrierHoldsAllUntilTheLastHasCome) {
  for (const std::uint32_t ranks : {2u, 3u, 8u, 13u}) {
    for (std::uint32_t last = 0; last < ranks; ++last) {
      Job job{.collective = Collective::kBarrier, .algorithm = "dissemination"};
      constexpr std::uint64_t kComes = 1'000'000;
      JobCluster cluster(ranks, JobCluster::Options());
      cluster.give_all({job});
      cluster.drive(
          0, [&](std::uint32_t v) { return v == last && cluster.network().now_ns() < kComes; });
      for (std::uint32_t v = 0; v < ranks; ++v) {
        ASSERT_EQ(cluster.done(v), 1u);
        ASSERT_GE(cluster.ended_ns(v), kComes) << v << " of " << ranks << ", last " << last;
      }
    }
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

// Every program that does not require a commuting operator.
TEST(Results, MatricesAreMultipliedInRankOrder) {
  Operator op{.op = Op::kCustom,
              .type = Type::kCustom,
              .commutes = false,
              .element_bytes = sizeof(Matrix),
              .custom_id = 22,
              .custom = multiply};
  std::set<std::string> ran;
  for (const std::uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 13u, 16u, 23u, 31u, 40u}) {
    if (small_sample() && ranks > 16) break;
    std::vector<Job> jobs;
    for (Job job : jobs_of_all_algorithms(op)) {
      for (const std::uint32_t root : {0u, ranks / 2, ranks - 1}) {
        job.root = root;
        job.seed = ranks;
        Program program;
        const Algorithm* algorithm = find_algorithm(job.collective, job.algorithm);
        const Status status = algorithm->generate(parameters_of(job, ranks), 0, program);
        if (status != Status::kOk || program.needs_commutative) continue;
        add(jobs, job, ranks, 8, 11);
        ran.insert(std::string(collective_name(job.collective)) + " " + job.algorithm);
      }
    }
    run_jobs(ranks, window_options(8, ranks), jobs);
    if (HasFatalFailure()) return;
  }
  for (const char* name :
       {"reduce chain", "reduce chain-ends", "reduce two-tree", "reduce two-tree-simplex",
        "allreduce chain", "allreduce two-tree", "allreduce two-tree-simplex", "scan chain",
        "scan two-tree", "scan two-tree-simplex", "exscan chain", "exscan two-tree",
        "exscan two-tree-simplex"}) {
    EXPECT_EQ(ran.count(name), 1u) << name;
  }
}

}  // namespace
}  // namespace espalier::testing

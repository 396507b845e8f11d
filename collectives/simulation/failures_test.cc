// Disagreement, dead nodes and stopped nodes: every node ends with the same cause, and that cause
// never names a live node as dead.

#include <gtest/gtest.h>

#include "collectives/simulation/testing/job_cluster.h"
#include "tests/whole.h"

namespace espalier::testing {
namespace {

constexpr std::uint64_t kDeadline = 1'000'000;  // D: 1 ms of virtual time

Job job_of(Collective collective, const char* algorithm, std::uint64_t count) {
  return {.collective = collective,
          .algorithm = algorithm,
          .count = count,
          .op = {.op = Op::kSum, .type = Type::kI32}};
}
const Job kBroadcast = job_of(Collective::kBroadcast, "two-tree", 2000);
const Job kReduce = job_of(Collective::kReduce, "chain", 2000);
const Job kAllreduce = job_of(Collective::kAllreduce, "two-tree", 2000);
const Job kScan = job_of(Collective::kScan, "two-tree", 2000);
const Job kScatter = job_of(Collective::kScatter, "binomial", 500);
const Job kGather = job_of(Collective::kGather, "binomial", 500);
const Job kAllgather = job_of(Collective::kAllgather, "ring", 500);
const Job kReduceScatter = job_of(Collective::kReduceScatter, "ring", 500);
const Job kAllToAll = job_of(Collective::kAllToAll, "pairwise", 500);
const Job kBarrier = job_of(Collective::kBarrier, "dissemination", 0);

JobCluster::Options eager_options(std::uint64_t eager_bytes, bool eager_copies = true) {
  JobCluster::Options options;
  options.config.deadline_ns = kDeadline;
  options.model.eager_bytes = eager_bytes;
  options.model.eager_copies = eager_copies;
  options.model.poison = true;
  return options;
}

bool same(const Cause& a, const Cause& b) {
  return a.status == b.status && a.detector == b.detector && a.peer == b.peer;
}

// Returns the one cause of all live nodes that learned of the failure before all their jobs were
// done.
Cause common_cause(JobCluster& cluster) {
  Cause cause;
  for (std::uint32_t v = 0; v < cluster.nodes(); ++v) {
    if (!cluster.network().alive(v)) continue;
    const Cause& own_cause = cluster.machine(v).cause();
    if (cause.status == Status::kOk) cause = own_cause;
    EXPECT_TRUE(same(own_cause, cause))
        << "node " << v << ": " << status_name(own_cause.status) << " " << own_cause.detector << " "
        << own_cause.peer << " and not " << status_name(cause.status) << " " << cause.detector
        << " " << cause.peer;
    EXPECT_EQ(cluster.machine(v).poll(), own_cause.status);
  }
  return cause;
}

// ---- disagreement ----

// Node `odd` executes another job than the others: both ends of one of its links report that.
void check_mismatch(std::uint32_t ranks, std::uint32_t odd, const std::vector<Job>& jobs,
                    const std::vector<Job>& odd_jobs) {
  for (const std::uint64_t eager : {0ull, 1'000'000ull}) {
    for (const bool copies : {false, true}) {
      JobCluster cluster(ranks, eager_options(eager, copies));
      cluster.give_all(jobs);
      cluster.give(odd, odd_jobs);
      cluster.drive(20 * kDeadline);
      const Cause cause = common_cause(cluster);
      EXPECT_EQ(cause.status, Status::kMismatch) << status_name(cause.status) << ", eager " << eager
                                                 << " copies " << copies << " odd " << odd;
      EXPECT_TRUE(cause.detector == odd || cause.peer == odd);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(Mismatch, Count) {
  for (const Job& job : {kBroadcast, kReduce, kAllreduce, kScan, kScatter, kAllgather, kAllToAll}) {
    Job odd = job;
    ++odd.count;
    for (std::uint32_t v = 0; v < 6; v += small_sample() ? 4 : 1) {
      check_mismatch(6, v, {job, job}, {odd, job});
    }
  }
}

// Every single entry of the vector that one rank has, one more or one fewer.
TEST(Mismatch, CountOfOneRank) {
  for (const Job& base : {kScatter, kGather, kAllgather, kReduceScatter, kAllToAll}) {
    Job job = base;
    job.counts = {300, 0, 40};
    if (job.collective == Collective::kAllToAll) job.counts = {1, 0, 40, 300, 5, 6, 0, 8, 9};
    for (std::size_t entry = 0; entry < job.counts.size(); ++entry) {
      for (std::uint32_t v = 0; v < 3; ++v) {
        Job odd = job;
        odd.counts[entry] += 1;
        check_mismatch(3, v, {job, job}, {odd, job});
        check_mismatch(3, v, {odd, job}, {job, job});
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

// Equal counts, given as a vector, are another collective than one number.
TEST(Mismatch, AVectorAndANumber) {
  for (Job job : {kScatter, kGather, kAllgather, kReduceScatter, kAllToAll}) {
    Job odd = job;
    odd.counts.assign(job.collective == Collective::kAllToAll ? 9 : 3, job.count);
    for (std::uint32_t v = 0; v < 3; ++v) check_mismatch(3, v, {job}, {odd});
  }
}

TEST(Mismatch, Operator) {
  for (const Job& job : {kReduce, kAllreduce}) {
    Job odd = job;
    odd.op.op = Op::kMax;
    for (std::uint32_t v = 0; v < 6; ++v) check_mismatch(6, v, {job}, {odd});
  }
  Job job = kReduce, odd = kReduce;
  odd.op.type = Type::kF32;  // of the same size
  check_mismatch(4, 2, {job}, {odd});
  job.op.op = Op::kCustom;
  job.op.custom = [](void*, const void*, const void*, std::uint64_t, void*) {};
  job.op.custom_id = 1;
  odd = job;
  odd.op.custom_id = 2;
  check_mismatch(4, 1, {job}, {odd});
}

TEST(Mismatch, Schedule) {
  Job odd = kReduce;
  odd.algorithm = "two-tree";
  for (std::uint32_t v = 0; v < 6; ++v) check_mismatch(6, v, {kReduce}, {odd});
  odd = kAllreduce;
  odd.window = 3;
  check_mismatch(6, 4, {kAllreduce}, {odd});
}

TEST(Mismatch, Order) {
  for (std::uint32_t v = 0; v < 6; ++v) {
    check_mismatch(6, v, {kBroadcast, kReduce}, {kReduce, kBroadcast});
    check_mismatch(6, v, {kAllreduce, kAllreduce, kReduce}, {kAllreduce, kReduce, kAllreduce});
    check_mismatch(6, v, {kAllgather, kBarrier}, {kBarrier, kAllgather});
  }
}

TEST(Mismatch, ChecksOfBlocksOnlyHere) {
  JobCluster::Options options = eager_options(0);
  options.config.check_blocks = true;
  sim::Network network(options.model, sim::complete_links(2));
  Machine machines[2];
  MachineConfig config = options.config;
  ASSERT_EQ(machines[0].init(network.endpoint(0), config), Status::kOk);
  config.check_blocks = false;
  ASSERT_EQ(machines[1].init(network.endpoint(1), config), Status::kOk);
  Program programs[2];
  CollectiveParameters parameters{.ranks = 2};
  std::uint8_t bytes[2][64] = {};
  for (std::uint32_t v = 0; v < 2; ++v) {
    ASSERT_EQ(find_algorithm(Collective::kBroadcast, "chain")->generate(parameters, v, programs[v]),
              Status::kOk);
    ASSERT_EQ(machines[v].start(programs[v], {bytes[v], bytes[v], nullptr, 0}, Operator(), 64),
              Status::kOk);
  }
  EXPECT_EQ(sim::run(network, {&machines[0], &machines[1]}).status, Status::kMismatch);
}

TEST(Mismatch, OneMoreCollectiveStalls) {
  // A rank that never starts the last collective is alive: no node may declare it dead.
  JobCluster cluster(4, eager_options(0));
  cluster.give_all({kReduce, kReduce});
  cluster.give(2, {kReduce});
  cluster.drive(20 * kDeadline);
  EXPECT_EQ(common_cause(cluster).status, Status::kStalled);
}

// ---- death ----

// Kills `victim` at `at_ns`. Every other node ends within 2D, with a cause that names the victim.
// All nodes have the same cause, unless the death `parts` the others: then causes may differ.
void check_death(JobCluster& cluster, const Job& job, std::uint32_t victim, std::uint64_t at_ns,
                 bool parts = false) {
  // Enough jobs that no node is done.
  cluster.give_all(std::vector<Job>(job.count == 0 ? 2000 : 200, job));
  cluster.network().kill(victim, at_ns);
  cluster.drive(at_ns + 3 * kDeadline);
  const std::string where = describe(job, cluster.ranks()) + " victim " + std::to_string(victim) +
                            " at " + std::to_string(at_ns) + " ns";
  if (!parts) {
    const Cause cause = common_cause(cluster);
    ASSERT_EQ(cause.status, Status::kDeadLink) << where;
    EXPECT_NE(cause.detector, victim) << where;
  }
  for (std::uint32_t v = 0; v < cluster.nodes(); ++v) {
    if (v == victim) continue;
    EXPECT_EQ(cluster.machine(v).cause().peer, victim) << where;
    ASSERT_EQ(cluster.status(v), Status::kDeadLink) << where;
    ASSERT_LE(cluster.ended_ns(v), at_ns + 2 * kDeadline) << where << " node " << v;
  }
}

TEST(Death, OfAnyNodeAtAnyTime) {
  unsigned seed = 0;
  for (const Job& job :
       {kBroadcast, kReduce, kAllreduce, kScan, kScatter, kAllgather, kAllToAll, kBarrier}) {
    for (const std::uint32_t ranks : {2u, 5u, 16u}) {
      for (std::uint32_t victim = 0; victim < ranks; victim += small_sample() ? 3 : 1) {
        ++seed;
        JobCluster::Options options = eager_options(100);
        options.unwilling = seed % 2 == 0;
        JobCluster cluster(ranks, options);
        check_death(cluster, job, victim, 1000 + 7919 * (seed % 70));
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Death, WithACountForEachRank) {
  for (const Job& base : {kScatter, kGather, kAllgather, kReduceScatter, kAllToAll}) {
    Job job = base;
    job.counts.assign(job.collective == Collective::kAllToAll ? 25 : 5, 0);
    for (std::size_t k = 0; k < job.counts.size(); k += 2) job.counts[k] = 100 * k + 1;
    for (std::uint32_t victim = 0; victim < 5; ++victim) {
      JobCluster cluster(5, eager_options(100));
      check_death(cluster, job, victim, 1000 + 7919 * victim);
      if (HasFailure()) return;
    }
  }
}

TEST(Death, OfALeafOrARouter) {
  const BlockRule blocks = {0, 64};
  CollectiveParameters parameters{
      .ranks = 9, .blocks = &blocks, .blocks_count = 1, .arity = 3, .height = 2};
  for (const Collective collective : {Collective::kBroadcast, Collective::kAllgather}) {
    const Algorithm* algorithm = find_algorithm(collective, "leaf");
    ASSERT_NE(algorithm, nullptr);
    const Programs programs = programs_of(*algorithm, parameters);
    ASSERT_FALSE(programs.empty());
    Job job = job_of(collective, "leaf", 500);
    job.programs = &programs;
    for (std::uint32_t victim = 0; victim < programs.size(); ++victim) {
      JobCluster::Options options = eager_options(100);
      options.model.one_port = false;
      JobCluster cluster(programs, options);
      check_death(cluster, job, victim, 1000 + 7919 * victim, victim >= parameters.ranks);
      if (HasFailure()) return;
    }
  }
}

TEST(Death, OfTwoNodesAtOnce) {
  for (std::uint32_t second = 4; second < 16; ++second) {
    JobCluster cluster(16, eager_options(100));
    cluster.give_all(std::vector<Job>(200, kAllreduce));
    cluster.network().kill(3, 100'000);
    cluster.network().kill(second, 100'000 + 10'000 * second);
    cluster.drive(4 * kDeadline);
    const Cause cause = common_cause(cluster);
    EXPECT_EQ(cause.status, Status::kDeadLink);
    EXPECT_TRUE(cause.peer == 3 || cause.peer == second) << second;
  }
}

TEST(Death, EveryLaterStartReturnsTheStatus) {
  JobCluster cluster(3, eager_options(0));
  cluster.give_all({kReduce});
  cluster.network().kill(1, 2000);
  cluster.drive(3 * kDeadline);
  std::uint8_t bytes[4] = {};
  EXPECT_EQ(cluster.machine(0).start(Program(), {bytes, bytes, nullptr, 0}, Operator(), 1),
            Status::kDeadLink);
  EXPECT_EQ(cluster.machine(0).poll(), Status::kDeadLink);
}

// ---- sleep ----

TEST(Sleep, ShorterThanTheDeadlineHarmsNobody) {
  for (std::uint32_t sleeper = 0; sleeper < 5; ++sleeper) {
    JobCluster cluster(5, eager_options(100));
    cluster.give_all(std::vector<Job>(20, kAllreduce));
    cluster.drive(0, [&, from = 50'000ull](std::uint32_t v) {
      const std::uint64_t now = cluster.network().now_ns();
      return v == sleeper && now > from && now < from + kDeadline * 9 / 10;
    });
    for (std::uint32_t v = 0; v < 5; ++v) {
      EXPECT_EQ(cluster.status(v), Status::kOk);
      EXPECT_EQ(cluster.done(v), 20u);
    }
  }
}

TEST(Sleep, LongerIsDeathAndTheSleeperBlamesNobody) {
  for (std::uint32_t sleeper = 0; sleeper < 5; ++sleeper) {
    JobCluster cluster(5, eager_options(100));
    cluster.give_all(std::vector<Job>(200, kAllreduce));
    cluster.drive(10 * kDeadline, [&](std::uint32_t v) {
      const std::uint64_t now = cluster.network().now_ns();
      return v == sleeper && now > 50'000 && now < 5 * kDeadline;
    });
    const Cause cause = common_cause(cluster);  // also the stopped node's
    EXPECT_EQ(cause.status, Status::kDeadLink);
    EXPECT_EQ(cause.peer, sleeper);
    EXPECT_LE(cluster.ended_ns((sleeper + 1) % 5), 50'000 + 2 * kDeadline);
  }
}

// The only neighbour of the dead node pauses again and again, for more than D/8 each time.
TEST(Sleep, OftenStillFindsTheDead) {
  for (const std::uint64_t pause : {14u, 16u, 25u}) {
    JobCluster cluster(8, eager_options(100));
    cluster.give_all(std::vector<Job>(200, kReduce));
    cluster.network().kill(7, 300'000);
    cluster.drive(10 * kDeadline, [&](std::uint32_t v) {
      return v == 6 && cluster.network().now_ns() % (kDeadline * 4 / 10) < kDeadline / 100 * pause;
    });
    const Cause cause = common_cause(cluster);
    EXPECT_EQ(cause.status, Status::kDeadLink) << pause;
    EXPECT_EQ(cause.detector, 6u) << pause;
    EXPECT_EQ(cause.peer, 7u) << pause;
    EXPECT_LE(cluster.ended_ns(0), 300'000 + 2 * kDeadline) << pause;
  }
}

TEST(Sleep, OfAllBlamesNobody) {
  // All nodes stop for ten deadlines.
  JobCluster cluster(5, eager_options(100));
  cluster.give_all(std::vector<Job>(30, kAllreduce));
  cluster.drive(0, [&](std::uint32_t) {
    const std::uint64_t now = cluster.network().now_ns();
    return now > 50'000 && now < 10 * kDeadline;
  });
  for (std::uint32_t v = 0; v < 5; ++v) {
    EXPECT_EQ(cluster.status(v), Status::kOk) << status_name(cluster.status(v));
    EXPECT_EQ(cluster.done(v), 30u);
  }
}

TEST(Sleep, StallReportNamesWhatIsAwaited) {
  JobCluster cluster(3, eager_options(0));
  Job job = kBroadcast;
  job.algorithm = "chain";
  cluster.give_all({job});
  const std::uint64_t asleep = 20'000;
  cluster.drive(asleep + kDeadline / 4, [&](std::uint32_t v) {
    return v == 1 && cluster.network().now_ns() > asleep &&
           cluster.network().now_ns() < asleep + kDeadline / 4;
  });
  EXPECT_EQ(cluster.done(2), 1u);  // it went on afterwards
  // Once more, with a look at the state while node 1 is stopped.
  JobCluster again(3, eager_options(0));
  again.give_all({job});
  bool looked = false;
  again.drive(0, [&](std::uint32_t v) {
    const std::uint64_t now = again.network().now_ns();
    if (v == 1 && now > asleep && now < asleep + kDeadline / 4 && now > asleep + kDeadline / 8) {
      const StallReport root = again.machine(0).stall_report();
      const StallReport last = again.machine(2).stall_report();
      EXPECT_TRUE(root.waiting && root.sending && root.peer == 1 && root.step > 0);
      EXPECT_TRUE(last.waiting && !last.sending && last.peer == 1 && last.step > 0);
      EXPECT_GE(root.since_ns, asleep / 2);
      EXPECT_LE(root.since_ns, asleep + 20'000);
      looked = true;
    }
    return v == 1 && now > asleep && now < asleep + kDeadline / 4;
  });
  EXPECT_TRUE(looked);
  EXPECT_FALSE(again.machine(0).stall_report().waiting);
}

}  // namespace
}  // namespace espalier::testing

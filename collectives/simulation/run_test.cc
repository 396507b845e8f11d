// Machines on the simulated network.

#include <gtest/gtest.h>

#include <string>

#include "collectives/algorithms/testing/parameters.h"
#include "collectives/simulation/testing/job_cluster.h"

namespace espalier::sim {
namespace {

CollectiveParameters parameters_of(std::uint32_t ranks) {
  return {.ranks = ranks, .blocks = &kSmallBlocks, .blocks_count = 1};
}

// The programs of one algorithm, and a cluster that executes them.
struct OneAlgorithm {
  OneAlgorithm(const Algorithm& algorithm, const CollectiveParameters& parameters,
               const Model& model = Model(), const MachineConfig& config = MachineConfig())
      : programs(testing::programs_of(algorithm, parameters)),
        cluster(programs, options_of(model, config)) {}
  void start(std::uint64_t count) { cluster.start_all(testing::sum_job(programs, 0, count)); }

  Programs programs;
  testing::JobCluster cluster;

 private:
  static testing::JobCluster::Options options_of(const Model& model, const MachineConfig& config) {
    testing::JobCluster::Options options;
    options.model = model;
    options.config = config;
    return options;
  }
};

// Broadcasts, reductions and allreductions; results_test.cc and steps_test.cc test the others.
template <typename Check>
void for_all_algorithms(Check check) {
  ASSERT_GT(algorithms().size(), 0u);
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective > Collective::kAllreduce || algorithm.where != Where::kAnywhere) {
      continue;
    }
    for (const std::uint32_t ranks : {1u, 2u, 3u, 4u, 5u, 8u, 13u, 16u, 23u}) {
      Program program;
      // The mirrored two trees need an odd number of ranks.
      if (algorithm.generate(parameters_of(ranks), 0, program) == Status::kUnsupported) continue;
      check(algorithm, ranks,
            std::string(collective_name(algorithm.collective)) + " " + algorithm.name + " on " +
                std::to_string(ranks));
    }
  }
}

TEST(Run, GivesCorrectResultsWithAnyModel) {
  for_all_algorithms([](const Algorithm& algorithm, std::uint32_t ranks, const std::string& what) {
    for (int variant = 0; variant < 8; ++variant) {
      OneAlgorithm one(algorithm, parameters_of(ranks),
                       {.one_port = variant % 2 == 0,
                        .eager_bytes = variant % 3 == 0 ? 0u : 64u,
                        .eager_copies = variant / 2 % 2 == 0,
                        .jitter = variant / 4 == 0 ? 0.0 : 3.0,
                        .seed = static_cast<std::uint64_t>(variant) + ranks,
                        .poison = true});
      for (const std::uint64_t count : {0u, 1u, 16u, 17u, 500u}) {
        one.start(count);
        const RunResult result = one.cluster.run();
        EXPECT_EQ(result.status, Status::kOk) << what << ": " << result.message;
        EXPECT_EQ(result.message, "") << what;
        EXPECT_TRUE(one.cluster.all_right())
            << what << ", " << count << " elements, variant " << variant;
      }
    }
  });
}

TEST(Run, LockStepTakesTheStepsThatTheProgramClaims) {
  for_all_algorithms([](const Algorithm& algorithm, std::uint32_t ranks, const std::string& what) {
    OneAlgorithm one(algorithm, parameters_of(ranks));
    Program program;
    ASSERT_EQ(algorithm.generate(parameters_of(ranks), 0, program), Status::kOk);
    for (const std::uint64_t count : {16u, 64u, 160u, 161u, 500u}) {
      one.start(count);
      const RunResult result = one.cluster.run_lock_step();
      EXPECT_EQ(result.status, Status::kOk) << what << ": " << result.message;
      EXPECT_TRUE(one.cluster.all_right()) << what;
      if (ranks == 1) continue;  // it may copy, but no block moves
      const Count& claim = program.counts[program.steps_ref];
      EXPECT_EQ(result.steps, count_value(claim, one.cluster.machine(0).blocks())) << what;
    }
  });
}

TEST(Run, EqualBlocksMakeFreeRunningNearlyAsFastAsLockStep) {
  for_all_algorithms([](const Algorithm& algorithm, std::uint32_t ranks, const std::string& what) {
    if (ranks < 2) return;
    double seconds[2];
    for (const bool lock_step : {false, true}) {
      OneAlgorithm one(algorithm, parameters_of(ranks));
      one.start(64 * 64 / 4);
      seconds[lock_step] = (lock_step ? one.cluster.run_lock_step() : one.cluster.run()).seconds;
    }
    // Ports that are always busy in lock step sometimes wait for each other: dual-root takes up to
    // 3.75 steps per block instead of 3, a reduce by circulant 1.16 instead of 1.
    const bool dual_root = std::string(algorithm.name) == "dual-root";
    const bool circulant = what.starts_with("reduce circulant");
    EXPECT_LT(seconds[0], (dual_root ? 1.25 : circulant ? 1.2 : 1.15) * seconds[1]) << what;
  });
}

TEST(Run, IsDeterministic) {
  const Algorithm* algorithm = find_algorithm(Collective::kAllreduce, "two-tree");
  ASSERT_NE(algorithm, nullptr);
  const auto seconds = [&](std::uint64_t seed) {
    OneAlgorithm one(*algorithm, parameters_of(13), {.jitter = 1, .seed = seed});
    one.start(1000);
    return one.cluster.run().seconds;
  };
  EXPECT_EQ(seconds(1), seconds(1));
  EXPECT_NE(seconds(1), seconds(2));
}

TEST(Run, ADeadNodeEndsTheRun) {
  const Algorithm* algorithm = find_algorithm(Collective::kBroadcast, "chain");
  ASSERT_NE(algorithm, nullptr);
  for (const bool lock_step : {false, true}) {
    OneAlgorithm one(*algorithm, parameters_of(5));
    one.cluster.network().kill(3, 20'000);
    one.start(5000);
    const RunResult result = lock_step ? one.cluster.run_lock_step() : one.cluster.run();
    EXPECT_EQ(result.status, Status::kDeadLink) << result.message;
    EXPECT_GT(result.seconds, 1);
    EXPECT_LT(result.seconds, 2 * 2) << "twice the deadline";
    for (const std::uint32_t v : {0u, 1u, 2u}) {
      EXPECT_EQ(one.cluster.machine(v).cause().detector, 2u);
      EXPECT_EQ(one.cluster.machine(v).cause().peer, 3u);
    }
  }
}

// The chain, but its last node expects each block one step late.
Status late_receiver(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                     Program& out) {
  const Algorithm* chain = find_algorithm(Collective::kBroadcast, "chain");
  const Status status = chain->generate(parameters, me, out);
  if (me + 1 == parameters.ranks) ++out.counts[out.actions[0].t0_ref].a;
  return status;
}

// Node 0 sends each block to two others in the same step.
Status two_sends(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                 Program& out) {
  const Algorithm* chain = find_algorithm(Collective::kBroadcast, "chain");
  CollectiveParameters two = parameters;
  two.ranks = 2;
  const Status status = chain->generate(two, me == 0 ? 0 : 1, out);
  out.node = me;
  out.ranks = parameters.ranks;
  if (me > 0) return status;
  out.peers[out.peers_count++] = 2;
  Index& link = out.indices[out.indices_count++];
  link = Index();
  link.base = 1;
  Action& action = out.actions[out.actions_count++];
  action = out.actions[0];
  action.link_ref = out.indices_count - 1;
  ++out.phases[0].actions;
  return status;
}

TEST(Run, LockStepFindsSchedulesThatBreakTheirSteps) {
  const auto expect_refused = [](const Algorithm& algorithm, std::uint32_t ranks,
                                 const char* message) {
    OneAlgorithm one(algorithm, parameters_of(ranks));
    one.start(100);
    const RunResult result = one.cluster.run_lock_step();
    EXPECT_EQ(result.status, Status::kNotInSchedule);
    EXPECT_EQ(result.message, message);
  };
  expect_refused({"late", Collective::kBroadcast, late_receiver, false, ""}, 4,
                 "step 2: node 2's send 0 to node 3 (60 bytes) found no partner in this step");
  const Algorithm twice = {"twice", Collective::kBroadcast, two_sends, false, ""};
  expect_refused(twice, 3, "step 0: node 0 sends 2 blocks");
  OneAlgorithm one(twice, parameters_of(3), {.one_port = false});
  one.start(100);
  const RunResult result = one.cluster.run_lock_step();
  EXPECT_EQ(result.status, Status::kOk) << result.message;
  EXPECT_EQ(result.steps, 7) << "one step per block";
  EXPECT_TRUE(one.cluster.all_right());
}

// The chain in the postal model with S = 1, L = 3: every hop takes two more steps.
Status slow_chain(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                  Program& out) {
  const Algorithm* chain = find_algorithm(Collective::kBroadcast, "chain");
  const Status status = chain->generate(parameters, me, out);
  out.send_ticks = 1;
  out.latency_ticks = 3;
  for (std::uint32_t i = 0; i < out.actions_count; ++i) {
    const std::uint32_t ref = out.counts_count++;
    out.counts[ref] = out.counts[out.actions[i].t0_ref];
    out.counts[ref].a += static_cast<std::int32_t>(2 * me);
    out.actions[i].t0_ref = static_cast<std::uint8_t>(ref);
  }
  const std::uint32_t steps = out.counts_count++;
  out.counts[steps] = out.counts[out.phases[0].steps_ref];
  out.counts[steps].a += static_cast<std::int32_t>(2 * (parameters.ranks - 1));
  out.phases[0].steps_ref = static_cast<std::uint8_t>(steps);
  return status;
}

TEST(Run, LockStepKnowsThePostalModel) {
  const Algorithm slow = {"slow", Collective::kBroadcast, slow_chain, false, ""};
  for (const std::uint64_t eager_bytes : {0u, 4096u}) {
    for (const std::uint32_t ranks : {2u, 5u}) {
      OneAlgorithm one(slow, parameters_of(ranks), {.eager_bytes = eager_bytes});
      one.start(160);  // 10 blocks
      const RunResult result = one.cluster.run_lock_step();
      EXPECT_EQ(result.status, Status::kOk) << result.message;
      EXPECT_EQ(result.steps, ranks - 2 + 10 + 2 * (ranks - 1));
      EXPECT_TRUE(one.cluster.all_right());
      // Asynchronously it runs at full speed; it does not need its receives to be late.
      one.start(160);
      EXPECT_EQ(one.cluster.run().status, Status::kOk);
      EXPECT_TRUE(one.cluster.all_right());
    }
  }
}

// Two blocks per step from each node to the next.
Status wide_chain(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                  Program& out) {
  const Algorithm* chain = find_algorithm(Collective::kBroadcast, "chain");
  const Status status = chain->generate(parameters, me, out);
  out.port_model = PortModel::kMultiport;
  const std::uint32_t actions = out.actions_count;
  for (const std::int32_t odd : {0, 1}) {
    const std::uint32_t ref = out.indices_count++;
    out.indices[ref] = {odd, 2, 0, 0, 0, 0, 0};
    for (std::uint32_t i = 0; i < actions; ++i) {
      Action& action = out.actions[odd * actions + i];
      action = out.actions[i];
      Operand& operand = action.kind == ActionKind::kSend ? action.a : action.into;
      operand.block_ref = static_cast<std::uint8_t>(ref);
    }
  }
  out.actions_count = static_cast<pb_size_t>(2 * actions);
  out.phases[0].actions = static_cast<std::uint8_t>(out.actions_count);
  return status;
}

TEST(Run, LockStepKnowsLanes) {
  const Algorithm wide = {"wide", Collective::kBroadcast, wide_chain, false, ""};
  double seconds[3] = {};
  for (const std::uint32_t lanes : {1u, 2u}) {
    Model model{.one_port = false};
    model.lanes = [&](std::uint32_t, std::uint32_t) { return lanes; };
    OneAlgorithm one(wide, parameters_of(3), model);
    one.start(160);  // 10 blocks
    const RunResult result = one.cluster.run_lock_step();
    if (lanes == 1) {
      EXPECT_EQ(result.status, Status::kNotInSchedule);
      EXPECT_EQ(result.message, "step 0: node 0 sends 2 blocks to node 1; the link has 1 lane");
    } else {
      EXPECT_EQ(result.status, Status::kOk) << result.message;
      EXPECT_EQ(result.steps, 5 + 1);
      EXPECT_TRUE(one.cluster.all_right());
    }
    OneAlgorithm free(wide, parameters_of(3), model);
    free.start(160);
    EXPECT_EQ(free.cluster.run().status, Status::kOk);
    EXPECT_TRUE(free.cluster.all_right());
    seconds[lanes] = free.cluster.network().now();
  }
  EXPECT_NEAR(seconds[1] / seconds[2], 2, 0.01);
}

// A ring in which every node receives before it sends.
Status circular_wait(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                     Program& out) {
  const Algorithm* chain = find_algorithm(Collective::kBroadcast, "chain");
  CollectiveParameters three = parameters;
  three.ranks = 3;
  const Status status = chain->generate(three, 1, out);
  for (std::uint32_t i = 0; i < out.peers_count; ++i) {
    out.peers[i] = out.peers[i] == 0 ? (me + parameters.ranks - 1) % parameters.ranks
                                     : (me + 1) % parameters.ranks;
  }
  out.node = me;
  out.ranks = parameters.ranks;
  out.root = (me + 1) % parameters.ranks;  // a different root per node: the root has no output
  return status;
}

TEST(Run, ACircularWaitIsAStall) {
  // The jobs have root 4, which is no rank: no rank has an input.
  const Algorithm wait = {"wait", Collective::kBroadcast, circular_wait, false, ""};
  for (const bool lock_step : {false, true}) {
    {
      OneAlgorithm one(wait, parameters_of(4));
      one.cluster.start_all(testing::sum_job(one.programs, 4, 10));
      const RunResult result = lock_step ? one.cluster.run_lock_step() : one.cluster.run();
      EXPECT_EQ(result.status, lock_step ? Status::kNotInSchedule : Status::kStalled);
      EXPECT_EQ(result.message, lock_step
                                    ? "step 0: node 1's receive 0 from node 0 (40 bytes) found "
                                      "no partner in this step"
                                    : "")
          << "asynchronously, the machines detect it themselves";
    }
    // Machines with a practically infinite deadline: the runner itself detects the stall.
    OneAlgorithm one(wait, parameters_of(4), {}, {.deadline_ns = 1'000'000'000'000'000'000});
    one.cluster.start_all(testing::sum_job(one.programs, 4, 10));
    if (lock_step) continue;
    const RunResult result = one.cluster.run();
    EXPECT_EQ(result.status, Status::kStalled);
    EXPECT_EQ(result.message,
              "node 0 is busy, but no event will follow; in step 0 it waits for a receive from "
              "node 3");
  }
}

}  // namespace
}  // namespace espalier::sim

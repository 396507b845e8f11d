// Premise of "one round of paces" (docs/verifier.md): the steps of all instances never decrease and
// stay inside the phase, for every N. Instances whose block does not exist are included.

#include <fstream>
#include <iterator>

#include "base/testing/results.h"
#include "collectives/verify/testing/premises.h"
#include "espalier/collectives/schedule/file.h"

namespace espalier::verify {
namespace {

class Paces : public Premises {
 protected:
  // Rank 1 also awaits blocks that are never reached, in instances at `pace` from step 0 onward, in
  // a phase of N + 10 steps.
  Action& await_in_vain(const Count& instances, std::uint8_t pace) {
    Operand into = nodes[1].output();
    into.block_ref = nodes[1].index(-kFar, 1);
    Action& receive = nodes[1].receive(0, 0, into);
    receive.instances_ref = nodes[1].count(instances);
    receive.pace_ref = pace;
    return receive;
  }
  // Rank 1 receives into slots, and copies block r in step r, in instance `round` * r. The others
  // have no block. Instances i with equal floor((i + `early`) / `round`) share a step.
  void copy_in_rounds(std::int32_t round, std::int32_t early) {
    NodeWriter& node = nodes[1];
    node.program.scratch_blocks = 8;
    action(1).into = node.slot(0, 8);
    const auto every = static_cast<std::uint32_t>(round);
    Operand into = node.output();
    into.block_ref = node.sum_of({{1, 1, 0, every, 0, 0, 0, 0},
                                  {kFar, 1, 0, every, 0, 0, 0, 0},
                                  {-kFar, 1, round - 1, every, 0, 0, 0, 0}});
    const std::uint8_t slot = node.index({0, 1, 0, every, 8, 0, 0});
    Action& copy = node.copy(0, into, node.slot_at(into.block_ref, slot));
    copy.pace_ref = node.index({0, 1, early, every, 0, 0, 0});
    copy.instances_ref = node.count(0, round);
  }
  // Expects the exhaustive proof, up to its own bound, to refuse N = `blocks`.
  void expect_refused_exhaustively(std::int64_t blocks) const {
    const Verdict verdict = brute_force(0);
    ASSERT_FALSE(verdict.valid);
    EXPECT_EQ(verdict.counterexample.blocks, blocks) << verdict.counterexample.message;
    EXPECT_NE(verdict.counterexample.message.find("the pace of action"), std::string::npos)
        << verdict.counterexample.message;
  }
};

TEST_F(Paces, InsideThePhase) {
  begin_long_pipe(10);
  await_in_vain({0, 1, 0, 0, 0}, nodes[1].pace(0, 1));
  finish(10, 1).expect_proven();
}

TEST_F(Paces, NotBelowThePhase) {
  // Instance 0 has no block, but its step would be -1.
  begin_pipe();
  action(1).into.block_ref = nodes[1].index(-1, 1);
  action(1).pace_ref = nodes[1].pace(-1, 1);
  action(1).instances_ref = nodes[1].count(1, 1);
  finish(0, 1).expect_refused(Property::kForm, 1);
}

TEST_F(Paces, NeverFall) {
  // Even instances are the blocks, odd ones have none: steps 0, 3, 1, 4, 2, ...
  begin_long_pipe(10);
  NodeWriter& node = nodes[1];
  action(1).into.block_ref = node.sum_of({{1, 1, 0, 2, 0, 0, 0, 0}, {-kFar, 1, 0, 0, 2, 0, 0, 0}});
  action(1).pace_ref = node.sum_of({{1, 1, 0, 2, 0, 0, 0, 0}, {3, 1, 0, 0, 2, 0, 0, 0}});
  action(1).instances_ref = node.count(0, 2);
  finish(10, 1).expect_refused(Property::kForm, 2);
}

TEST_F(Paces, OfOperationsMayRest) {
  // Even instances copy the block of their step, odd ones have none and are in the same step.
  begin_pipe();
  copy_in_rounds(2, 0);
  finish(0, 1).expect_proven();
}

// Block r goes through three slots in step r: r mod 8, 8 + 2r mod 16 and 9 + 2r mod 16. Two
// instances of one copy move it, in the order of i, or in the opposite order.
TEST_F(Paces, OfOperationsKeepTheOrderOfInstances) {
  static constexpr std::uint8_t kSlots[] = {
      0,  0, 8,  0, 1,  0, 10, 0, 2,  0, 12, 0, 3,  0, 14, 0,  // read
      4,  0, 16, 0, 5,  0, 18, 0, 6,  0, 20, 0, 7,  0, 22, 0,
      9,  0, 8,  0, 11, 0, 10, 0, 13, 0, 12, 0, 15, 0, 14, 0,  // written in the opposite order
      17, 0, 16, 0, 19, 0, 18, 0, 21, 0, 20, 0, 23, 0, 22, 0};
  for (const bool opposite : {false, true}) {
    begin_pipe();
    NodeWriter& node = nodes[1];
    node.program.table = {kSlots, sizeof kSlots};
    node.program.scratch_blocks = 24;
    action(1).into = node.slot(0, 8);
    const std::uint8_t block = node.index({0, 1, 0, 2, 0, 0, 0});
    const auto add = static_cast<std::int32_t>(opposite);
    const std::uint8_t read = node.sum_of({{1, 1, add, 0, 16, 0, 0, 1}});
    const std::uint8_t in_order = node.index({8, 1, 0, 0, 16, 0, 0});
    const std::uint8_t written = opposite ? node.sum_of({{1, 1, 0, 0, 16, 0, 0, 17}}) : in_order;
    Action& copy = node.copy(0, node.slot_at(block, written), node.slot_at(block, read));
    copy.pace_ref = block;
    copy.instances_ref = node.count(0, 2);
    Operand last = node.slot_at(node.index(0, 1), node.index({9, 2, 0, 0, 16, 0, 0}));
    node.copy(0, node.output(), last);
    finish(0, 1);
    opposite ? expect_refused(Property::kHazards, 1) : expect_proven();
  }
}

TEST_F(Paces, WithAtMost255OperationsInAStep) {
  begin_pipe();
  copy_in_rounds(255, 0);
  finish(0, 1).expect_proven();
  begin_pipe();
  copy_in_rounds(256, 0);
  finish(0, 1).expect_refused(Property::kForm, 1);
}

TEST_F(Paces, WithAtMost255OperationsOfTwoRoundsInAStep) {
  // Instances 150 to 449 are in step 1. 150 of the first round of 300 instances are.
  begin_long_pipe(10);
  copy_in_rounds(300, 150);
  finish(10, 1).expect_refused(Property::kForm, 2);
}

TEST_F(Paces, InsideTheirRound) {
  // Instance 1 has no block; its step would be 2^30 * 32767 * 2^30, which 64 bits do not hold.
  static constexpr std::uint8_t kEntries[] = {0, 0, 255, 127};
  begin_pipe();
  NodeWriter& node = nodes[1];
  node.program.table = {kEntries, sizeof kEntries};
  action(1).into.block_ref = node.sum_of({{1, 1, 0, 2, 0, 0, 0, 0}, {-kFar, 1, 0, 0, 2, 0, 0, 0}});
  action(1).pace_ref = node.sum_of({{1, 1, 0, 2, 0, 0, 0, 0}, {kFar, 1, 0, 0, 2, 0, 0, 1}});
  action(1).instances_ref = node.count(0, 2);
  finish(1 - (1 << 20), 1 << 20, 1 << 30).expect_unknown("its pace leaves its round");
}

TEST_F(Paces, NotBeyondThePhase) {
  // Five instances more than blocks.
  begin_pipe();
  action(1).pace_ref = nodes[1].pace(0, 1);
  action(1).instances_ref = nodes[1].count(5, 1);
  finish(0, 1).expect_refused(Property::kForm, 1);
}

TEST_F(Paces, NotBeyondThePhaseForLargeN) {
  begin_long_pipe(10);
  await_in_vain({0, 1, 0, 0, 0}, nodes[1].pace(0, 2));
  finish(10, 1);
  expect_unproven("its instances come nearer to the end of the phase with more blocks", 12);
}

TEST_F(Paces, NotBeyondThePhaseForFarLargerN) {
  // Three steps per two blocks, in a phase of N + 60 steps. The last instance is in step
  // floor(3 (N - 1) / 2), which is outside from N = 123 onward.
  begin_long_pipe(60);
  await_in_vain({0, 1, 0, 0, 0}, nodes[1].index({0, 3, 0, 2, 0, 0, 0}));
  finish(60, 1);
  expect_unproven("its instances come nearer to the end of the phase with more blocks", 123);
  expect_refused_exhaustively(123);
}

TEST_F(Paces, InstancesGrowInTheCycleOfTheBlocks) {
  // 3, 3, 3, 10, ..., 10, 17, ... instances.
  begin_long_pipe(4);
  for (const std::uint32_t node : {0u, 1u}) {
    action(node).pace_ref = nodes[node].pace(0, 1);
    action(node).instances_ref = nodes[node].count(Count{3, 0, 7, -3, 7});
  }
  finish(4, 1).expect_unproven("its instances do not grow by a round in a stride", 4);
}

TEST_F(Paces, InstancesWithoutBlocksGrowInTheCycleOfTheBlocks) {
  // 1, 2, 3, 1004, ... instances, none of which has a block.
  begin_long_pipe(10);
  await_in_vain({0, 1, 1000, -3, 1000}, nodes[1].pace(0, 1));
  finish(10, 1).expect_unproven("its instances do not grow by a round in a stride", 4);
}

TEST_F(Paces, InstancesWithoutBlocksGrowByRounds) {
  // N instances in steps 0, 3, 3, 6, 6, ...; a block would have two.
  begin_long_pipe(10);
  NodeWriter& node = nodes[1];
  Action& receive = await_in_vain({0, 1, 0, 0, 0}, node.sum_of({{3, 1, 1, 2, 0, 0, 0, 0}}));
  receive.into.block_ref = node.index({-kFar, 1, 0, 2, 0, 0, 0});
  finish(10, 1).expect_unproven("its instances do not grow by a round in a stride", 20);
}

TEST_F(Paces, InstancesThatBeginForLargeN) {
  // N - 100 instances in every second step.
  begin_long_pipe(10);
  await_in_vain({-100, 1, 0, 0, 0}, nodes[1].pace(0, 2));
  finish(10, 1).expect_unproven("its instances begin only with more blocks", 212);
  expect_refused_exhaustively(212);
}

// Schedules of 4 ranks in which some instances have no block, found by an independent executor.
class Holes : public Premises {
 protected:
  void read(const std::string& name) {
    const std::string path = std::string(ESPALIER_TESTDATA) + "/" + name;
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    ScheduleFile schedule;
    ASSERT_EQ(schedule.open(bytes_.data(), bytes_.size()), Status::kOk) << path;
    topology = or_throw(topology::parse(std::string(schedule.spec(), schedule.spec_size())));
    ASSERT_NE(topology, nullptr);
    programs.resize(schedule.nodes());
    for (std::uint32_t node = 0; node < schedule.nodes(); ++node) {
      DecodedProgram program;
      ASSERT_EQ(schedule.program(node, program), Status::kOk);
      programs[node] = program;
    }
  }
  // The least N for which the schedule is wrong, the rank and the step are named.
  void expect_named(Property property, std::int64_t blocks, std::int64_t rank,
                    const std::string& step) {
    expect_refused(property, blocks);
    const Counterexample wrong = verdict_of(*topology, programs).counterexample;
    EXPECT_EQ(wrong.property, property);
    EXPECT_EQ(wrong.node, rank);
    EXPECT_NE(wrong.message.find(step), std::string::npos) << wrong.message;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

TEST_F(Holes, Every) {
  ASSERT_NO_FATAL_FAILURE(read("every.esp"));
  expect_named(Property::kHazards, 3, 2, "rank 2, step 10");
}

TEST_F(Holes, PaceThatFalls) {
  ASSERT_NO_FATAL_FAILURE(read("pace-fall.esp"));
  expect_named(Property::kForm, 1, 2, "rank 2: the pace of action 0 gives instance 1 step 1 ");
}

TEST_F(Holes, PaceBeyondThePhase) {
  ASSERT_NO_FATAL_FAILURE(read("pace-beyond.esp"));
  expect_named(Property::kForm, 1, 2,
               "rank 2: the pace of action 0 gives instance 1 step 1048582 ");
}

}  // namespace
}  // namespace espalier::verify

// Collectives that are prepared: checked once, and issued as a whole if they are short.

#include <algorithm>
#include <array>

#include "collectives/machine/testing/chain_test.h"

namespace espalier::testing {
namespace {

using PreparedTest = ChainTest;

TEST_F(PreparedTest, APreparedCollectiveStartsAgainAndAgain) {
  Machine::Prepared first, second;
  EXPECT_EQ(machine.start(first), Status::kBadArgument);  // no init()
  EXPECT_EQ(machine.prepare(program, buffers, op, 64, first), Status::kBadArgument);
  init();
  EXPECT_EQ(machine.start(first), Status::kBadArgument);  // not prepared
  ASSERT_EQ(machine.prepare(program, buffers, op, 64, first), Status::kOk);
  const OwnedProgram other = chain_program(3, true);
  const Operator sum = {.op = Op::kSum, .type = Type::kU8};
  ASSERT_EQ(machine.prepare(other, buffers, sum, 32, second), Status::kOk);
  EXPECT_EQ(machine.poll(), Status::kOk);
  EXPECT_TRUE(endpoint.posts.empty()) << "preparing starts nothing";
  std::vector<std::uint64_t> tags;
  for (int i = 0; i < 6; ++i) {
    const bool is_first = i % 3 != 1;
    ASSERT_EQ(machine.start(is_first ? first : second), Status::kOk);
    EXPECT_EQ(machine.blocks(), is_first ? 4u : 2u);
    EXPECT_EQ(machine.start(first), Status::kBadArgument);  // busy
    Machine::Prepared third;
    EXPECT_EQ(machine.prepare(program, buffers, op, 64, third), Status::kBadArgument);
    EXPECT_EQ(machine.poll(), Status::kBusy);
    ASSERT_FALSE(endpoint.posts.empty());
    EXPECT_EQ(endpoint.posts[0].link, 2u);
    tags.push_back(endpoint.posts[0].tag);
    EXPECT_EQ(finish(), Status::kOk);
  }
  // The same as without preparing.
  Machine plain;
  MachineConfig config{.deadline_ns = kD};
  ASSERT_EQ(plain.init(endpoint, config), Status::kOk);
  ASSERT_EQ(plain.start(program, buffers, op, 64), Status::kOk);
  EXPECT_EQ(plain.poll(), Status::kBusy);
  EXPECT_EQ(endpoint.posts[0].tag, tags[0]);
  std::sort(tags.begin(), tags.end());
  EXPECT_EQ(std::unique(tags.begin(), tags.end()), tags.end());
}

// 256 sends in one step, of blocks that do not exist.
TEST_F(PreparedTest, TooManyInstancesOfAStepAreNotIssuedAsAWhole) {
  program.counts[4] = {InstanceScheduler::kMaxInStep + 1, 0, 0, 0, 0};
  program.counts_count = 5;
  program.indices[4].base = 1000;
  program.indices_count = 5;
  program.actions[1].instances_ref = 4;
  program.actions[1].pace_ref = 1;
  program.actions[1].a.block_ref = 4;
  init();
  Machine::Prepared prepared;
  ASSERT_EQ(machine.prepare(program, buffers, op, 48, prepared), Status::kOk);
  EXPECT_FALSE(prepared.is_short());
  ASSERT_EQ(machine.start(prepared), Status::kOk);
  (void)machine.poll();
  EXPECT_EQ(machine.cause().status, Status::kTooLarge) << "as without preparing";
}

// Three blocks take four steps, as many as the window.
TEST_F(PreparedTest, AShortCollectiveIsIssuedAsAWhole) {
  init();
  Machine::Prepared prepared;
  ASSERT_EQ(machine.prepare(program, buffers, op, 48, prepared), Status::kOk);
  ASSERT_TRUE(prepared.is_short());
  ASSERT_EQ(machine.start(prepared), Status::kOk);
  EXPECT_EQ(machine.next_step(), INT64_MAX) << "issued by the start";
  EXPECT_TRUE(endpoint.posts.empty()) << "posted by the poll";
  EXPECT_EQ(finish(), Status::kOk);
  // Lock step goes by the scheduler.
  machine.set_step_limit(1);
  ASSERT_EQ(machine.start(prepared), Status::kOk);
  EXPECT_EQ(machine.poll(), Status::kBusy);
  EXPECT_EQ(machine.next_step(), 1) << "not issued";
  machine.set_step_limit(INT64_MAX);
  EXPECT_EQ(finish(), Status::kOk);
  // Another block does not fit.
  ASSERT_EQ(machine.prepare(program, buffers, op, 64, prepared), Status::kOk);
  EXPECT_FALSE(prepared.is_short());
  // Nor has a machine with a log any.
  std::array<Event, 64> events;
  EventLog log(events.data(), nullptr, events.size());
  MachineConfig config;
  config.log = &log;
  Machine logging;
  ASSERT_EQ(logging.init(endpoint, config), Status::kOk);
  ASSERT_EQ(logging.prepare(program, buffers, op, 48, prepared), Status::kOk);
  EXPECT_FALSE(prepared.is_short());
}

// The scheduler then has the place of the last phase of another program.
TEST_F(PreparedTest, AShortCollectiveFollowsOneOfMorePhases) {
  OwnedProgram longer = program;
  for (longer.phases_count = 1; longer.phases_count < 3; ++longer.phases_count) {
    longer.phases[longer.phases_count] = program.phases[0];
    std::copy_n(program.actions, 3, longer.actions + longer.actions_count);
    longer.actions_count += 3;
  }
  init();
  Machine::Prepared prepared;
  ASSERT_EQ(machine.prepare(program, buffers, op, 48, prepared), Status::kOk);
  ASSERT_TRUE(prepared.is_short());
  ASSERT_EQ(machine.start(longer, buffers, op, 48), Status::kOk);
  EXPECT_EQ(finish(), Status::kOk);
  ASSERT_EQ(machine.start(prepared), Status::kOk);
  EXPECT_EQ(finish(), Status::kOk);
}

TEST_F(PreparedTest, PreparingRefusesWhatStartingRefuses) {
  init();
  Machine::Prepared prepared;
  EXPECT_EQ(machine.prepare(program, {input, nullptr, scratch, sizeof scratch}, op, 64, prepared),
            Status::kBadArgument);
  EXPECT_EQ(machine.start(prepared), Status::kBadArgument);
  endpoint.prepare_status = Status::kTooLarge;
  ASSERT_EQ(machine.prepare(program, buffers, op, 64, prepared), Status::kOk);
  EXPECT_EQ(machine.start(prepared), Status::kTooLarge);
  EXPECT_EQ(machine.poll(), Status::kOk);
}

}  // namespace
}  // namespace espalier::testing

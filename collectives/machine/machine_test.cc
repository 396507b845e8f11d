// What start() refuses, what can be read, how much a poll does.

#include "collectives/machine/testing/chain_test.h"

namespace espalier::testing {
namespace {

using MachineTest = ChainTest;

TEST_F(MachineTest, TheProgramIsWellFormed) {
  EXPECT_EQ(check_program(program), Status::kOk);
  EXPECT_EQ(check_program(chain_program(9, true)), Status::kOk);
}

TEST_F(MachineTest, BeforeInitNothingGoes) {
  EXPECT_EQ(start(), Status::kBadArgument);
  EXPECT_EQ(machine.poll(), Status::kBadArgument);
  EXPECT_EQ(machine.next_deadline(), UINT64_MAX);
}

TEST_F(MachineTest, InitOnceWithAWindow) {
  MachineConfig config;
  config.window = 0;
  EXPECT_EQ(machine.init(endpoint, config), Status::kBadArgument);
  ScriptedEndpoint wide(0, std::vector<std::uint32_t>(kMaxLinks + 1));
  EXPECT_EQ(machine.init(wide, MachineConfig()), Status::kTooLarge);
  init();
  EXPECT_EQ(machine.init(endpoint, MachineConfig()), Status::kBadArgument);
}

TEST_F(MachineTest, RunsOnTheRightLinks) {
  init();
  ASSERT_EQ(start(), Status::kOk);
  EXPECT_EQ(machine.blocks(), 4u);
  EXPECT_EQ(machine.next_deadline(), 0u);
  EXPECT_EQ(machine.poll(), Status::kBusy);
  ASSERT_EQ(endpoint.posts.size(), 4u);
  for (const auto& post : endpoint.posts) EXPECT_TRUE(!post.send && post.link == 2);
  endpoint.complete(false, 2);
  (void)machine.poll();
  ASSERT_EQ(endpoint.posts.size(), 4u);
  EXPECT_TRUE(endpoint.posts.back().send);
  EXPECT_EQ(endpoint.posts.back().link, 1u);
  EXPECT_EQ(start(), Status::kBadArgument);  // busy
  EXPECT_EQ(finish(), Status::kOk);
  EXPECT_EQ(machine.next_deadline(), 0u);
  EXPECT_EQ(machine.poll(), Status::kOk);
  EXPECT_EQ(machine.next_deadline(), UINT64_MAX);
  ASSERT_EQ(start(), Status::kOk);
  EXPECT_EQ(finish(), Status::kOk);
}

TEST_F(MachineTest, RefusesBuffers) {
  init();
  buffers.output = nullptr;
  EXPECT_EQ(start(), Status::kBadArgument);
  EXPECT_EQ(start(0), Status::kOk);  // nothing to put there
  EXPECT_EQ(finish(), Status::kOk);
  buffers.output = output;
  buffers.input = nullptr;  // not touched
  buffers.scratch_bytes = 31;
  EXPECT_EQ(start(), Status::kBadArgument);
  buffers.scratch_bytes = 32;
  buffers.scratch = scratch + 8;
  EXPECT_EQ(start(), Status::kBadArgument);
  buffers.scratch = nullptr;
  EXPECT_EQ(start(), Status::kBadArgument);
  buffers.scratch = output + 48;
  EXPECT_EQ(start(), Status::kBadArgument);
  buffers.scratch = output + 64;
  EXPECT_EQ(start(), Status::kOk);
  EXPECT_EQ(finish(), Status::kOk);
}

TEST_F(MachineTest, RefusesPartialOverlapOfInputAndOutput) {
  program = chain_program(0, true);
  op.op = Op::kSum;
  op.type = Type::kU8;
  init();
  buffers.input = output + 16;
  EXPECT_EQ(start(), Status::kBadArgument);
  buffers.input = output;
  EXPECT_EQ(start(), Status::kOk);
  EXPECT_EQ(endpoint.prepared.size(), 2u);
  EXPECT_EQ(finish(), Status::kOk);
  buffers.input = output + 64;
  EXPECT_EQ(start(), Status::kOk);
  EXPECT_EQ(endpoint.prepared.size(), 3u);
}

TEST_F(MachineTest, RefusesOperators) {
  init();
  op.type = Type::kCustom;  // of 0 bytes
  EXPECT_EQ(start(), Status::kBadOperator);
  op.type = Type::kF32;
  op.op = Op::kXor;  // but nothing is combined
  program.needs_commutative = true;
  EXPECT_EQ(start(16), Status::kOk);
  EXPECT_EQ(finish(), Status::kOk);
  program = chain_program(0, true);
  program.needs_commutative = true;
  EXPECT_EQ(start(16), Status::kBadOperator);
  op.op = Op::kSum;
  op.commutes = false;  // built in: it does
  EXPECT_EQ(start(16), Status::kOk);
  EXPECT_EQ(finish(), Status::kOk);
  op.op = Op::kCustom;
  EXPECT_EQ(start(16), Status::kBadOperator);
  op.custom = [](void*, const void*, const void*, std::uint64_t, void*) {};
  EXPECT_EQ(start(16), Status::kBadOperator);
  op.commutes = true;
  EXPECT_EQ(start(16), Status::kOk);
}

TEST_F(MachineTest, RefusesPeersSizesAndWhatTheEndpointRefuses) {
  init();
  program.peers[1] = 3;
  EXPECT_EQ(start(), Status::kNoSuchPeer);
  program.peers[1] = 2;
  EXPECT_EQ(start(UINT64_MAX), Status::kTooLarge);
  program.latency_ticks = 2;
  EXPECT_EQ(start(), Status::kUnsupported);
  program.latency_ticks = 1;
  endpoint.prepare_status = Status::kBackEnd;
  EXPECT_EQ(start(), Status::kBackEnd);
  endpoint.prepare_status = Status::kOk;
  EXPECT_EQ(start(), Status::kOk);
  EXPECT_EQ(finish(), Status::kOk);
}

TEST_F(MachineTest, AGapOfAMillionStepsCostsNothing) {
  program = chain_program(1'000'000, false);
  init();
  ASSERT_EQ(start(), Status::kOk);
  EXPECT_EQ(machine.stall_report().step, 1'000'000);
  (void)machine.poll();
  EXPECT_EQ(endpoint.posts.size(), 4u);
  EXPECT_EQ(finish(), Status::kOk);
}

TEST_F(MachineTest, HorizonHoldsStepsBack) {
  init();
  machine.set_horizon(2);
  ASSERT_EQ(start(), Status::kOk);
  (void)machine.poll();
  EXPECT_EQ(endpoint.posts.size(), 2u);
  EXPECT_EQ(finish(), Status::kBusy);
  EXPECT_TRUE(endpoint.posts.empty());
  EXPECT_EQ(machine.stall_report().step, 2);
  EXPECT_FALSE(machine.stall_report().waiting);
  machine.set_horizon(1000);
  EXPECT_EQ(finish(), Status::kOk);
}

TEST_F(MachineTest, StallReportIsOfTheOldest) {
  init();
  EXPECT_FALSE(machine.stall_report().waiting);
  ASSERT_EQ(start(), Status::kOk);
  (void)machine.poll();
  StallReport report = machine.stall_report();
  EXPECT_TRUE(report.waiting && !report.sending);
  EXPECT_EQ(report.step, 0);
  EXPECT_EQ(report.link, 2u);
  EXPECT_EQ(report.peer, 0u);
  EXPECT_EQ(report.action, 0u);
  EXPECT_EQ(report.since_ns, endpoint.time);
  endpoint.complete(false, 2);
  endpoint.time += 100;
  (void)machine.poll();
  for (int i = 0; i < 3; ++i) {
    endpoint.complete(false, 2);
    (void)machine.poll();
  }
  report = machine.stall_report();
  EXPECT_TRUE(report.waiting && report.sending);
  EXPECT_EQ(report.step, 1);
  EXPECT_EQ(report.peer, 2u);
  EXPECT_EQ(report.action, 1u);
  EXPECT_EQ(finish(), Status::kOk);
  EXPECT_EQ(machine.stall_report().step, INT64_MAX);
}

TEST_F(MachineTest, ABrokenProgramEndsInsteadOfWritingElsewhere) {
  // Not what check_program can see: the slot runs out of the scratch memory.
  program.indices[3].mod = 0;
  init();
  ASSERT_EQ(start(), Status::kOk);
  (void)finish();
  EXPECT_EQ(machine.cause().status, Status::kMalformed);
  EXPECT_EQ(machine.cause().peer, 1u);
}

TEST_F(MachineTest, OnePollDoesBoundedWork) {
  program.blocks[0].block_bytes = 1;
  program.window = kMaxWindow;
  init();
  int posts = 0;
  endpoint.on_post = [&](const ScriptedEndpoint::Post&) { ++posts; };
  ASSERT_EQ(start(200), Status::kOk);
  for (int i = 0; i < 10'000; ++i) {
    posts = 0;
    const std::size_t before = endpoint.completions.size();
    if (machine.poll() != Status::kBusy) break;
    ASSERT_LE(posts, 2 * static_cast<int>(kMaxWindow));
    ASSERT_LE(before - endpoint.completions.size(), 8u);
    while (!endpoint.posts.empty()) {
      endpoint.complete(endpoint.posts[0].send, endpoint.posts[0].link);
    }
  }
  EXPECT_EQ(machine.poll(), Status::kOk);
}

}  // namespace
}  // namespace espalier::testing

// The errors of start(), the reports, and the amount of work per poll.

#include <algorithm>
#include <cstring>

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
  MachineConfig config{.window = 0};
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
  run();
}

TEST_F(MachineTest, RefusesBuffers) {
  init();
  buffers.output = nullptr;
  EXPECT_EQ(start(), Status::kBadArgument);
  run(0);  // there are no bytes to put there
  buffers.output = output;
  buffers.input = nullptr;  // the program does not use it
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
  run();
}

TEST_F(MachineTest, RefusesPartialOverlapOfInputAndOutput) {
  program = chain_program(0, true);
  op = {.op = Op::kSum, .type = Type::kU8};
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
  op.op = Op::kXor;  // allowed: nothing is combined
  program.needs_commutative = true;
  run(16);
  op = {.op = Op::kCustom, .type = Type::kF32, .commutes = false};
  EXPECT_EQ(start(16), Status::kBadOperator) << "as on ranks that combine";
  op = {.op = Op::kXor, .type = Type::kF32};
  program = chain_program(0, true);
  program.needs_commutative = true;
  EXPECT_EQ(start(16), Status::kBadOperator);
  op.op = Op::kSum;
  op.commutes = false;  // ignored for a built-in operator, which does
  run(16);
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
  program.latency_ticks = program.window + 1;
  EXPECT_EQ(start(), Status::kUnsupported) << "a send would wait for a step that waits for it";
  program.latency_ticks = program.window;
  endpoint.prepare_status = Status::kBackEnd;
  EXPECT_EQ(start(), Status::kBackEnd);
  endpoint.prepare_status = Status::kOk;
  run();
}

// One buffer holds only the rank's own segment, at its beginning; the other holds all segments.
TEST_F(MachineTest, InPlaceIsWhereEachSegmentIsAtOneAddress) {
  program = chain_program(0, true);
  program.segments = program.ranks;
  program.scratch_blocks = 0;
  program.actions[2].into = program.actions[2].a;
  program.indices[0].base = 1;  // segment 1, the link too
  op = {.op = Op::kSum, .type = Type::kU8};
  init();
  for (const Collective collective : {Collective::kAllgather, Collective::kReduceScatter}) {
    program.collective = collective;
    ASSERT_EQ(check_program(program), Status::kOk);
    const bool own_input = collective == Collective::kAllgather;
    std::uint8_t* const own = output + 16;
    for (std::uint8_t* address = output; address < output + 48; address += 8) {
      buffers.input = own_input ? address : output;
      buffers.output = own_input ? output : address;
      EXPECT_EQ(start(16), address == own ? Status::kOk : Status::kBadArgument) << address - output;
      if (address != own) continue;
      ASSERT_EQ(endpoint.prepared.size(), 1u);
      EXPECT_EQ(endpoint.prepared[0].bytes, output);
      EXPECT_EQ(endpoint.prepared[0].size, 48u);
      (void)machine.poll();
      EXPECT_EQ(endpoint.posts[0].bytes, own);
      EXPECT_EQ(finish(), Status::kOk);
    }
  }
}

TEST_F(MachineTest, APlaceOutsideWhatABufferHoldsEndsIt) {
  program.collective = Collective::kScatter;
  program.segments = program.ranks;
  init();
  run_malformed(16);  // segment 0, of rank 1
}

TEST_F(MachineTest, RefusesProgramsThatNameABufferThatIsNotThere) {
  init();
  program.root = 1;  // the root of a broadcast has no output
  EXPECT_EQ(start(), Status::kMalformed);
  EXPECT_EQ(start(0), Status::kOk) << "nothing is there";
}

TEST_F(MachineTest, ABarrierTakesNoElementsAndNoOperator) {
  program = chain_program(0, true);
  program.collective = Collective::kBarrier;
  program.needs_commutative = true;
  init();
  buffers = Buffers();
  EXPECT_EQ(start(1), Status::kBadArgument);
  run(0);
  op = {.op = Op::kXor, .type = Type::kF32};
  run(0);
}

TEST_F(MachineTest, RunsAreOneMessage) {
  program.blocks[0].block_bytes = 0;
  program.segments = 4;
  program.scratch_blocks = 4;
  for (std::uint32_t i = 0; i < program.actions_count; ++i) {
    program.actions[i].into.segment_count = program.actions[i].a.segment_count = 3;
  }
  ASSERT_EQ(check_program(program), Status::kOk);
  program.indices[0].base = 0;
  init();
  begin(31);  // segments of 8, 8, 8, 7
  ASSERT_EQ(endpoint.posts.size(), 1u);
  EXPECT_EQ(endpoint.posts[0].bytes, output);
  EXPECT_EQ(endpoint.posts[0].size, 24u);
  std::memset(output, 7, 24);
  EXPECT_EQ(finish(), Status::kOk);
  EXPECT_EQ(std::memcmp(scratch, output, 24), 0);
  EXPECT_EQ(scratch[24], 0);
}

// Two sends per step on one link: a step waits until the link has room for both.
TEST_F(MachineTest, StepsWaitForRoomInEveryLane) {
  program.actions[3] = program.actions[1];
  program.actions_count = 4;
  program.phases[0].actions = 4;
  for (std::uint32_t action = 0; action < 4; ++action) program.actions[action].after = 0;
  program.window = 16;
  program.port_model = PortModel::kMultiport;
  ScriptedEndpoint narrow(1, {2, 0}, 3);
  Machine on_narrow;
  ASSERT_EQ(on_narrow.init(narrow, MachineConfig()), Status::kOk);
  ASSERT_EQ(on_narrow.start(program, buffers, op, 64), Status::kOk);
  (void)on_narrow.poll();
  const auto posted = [&](bool send) {
    return std::count_if(narrow.posts.begin(), narrow.posts.end(),
                         [&](const auto& post) { return post.send == send; });
  };
  EXPECT_EQ(posted(true), 2) << "the sends of step 1";
  EXPECT_EQ(posted(false), 2) << "the receives of steps 0 and 1";
  narrow.complete(true, 0);
  (void)on_narrow.poll();
  EXPECT_EQ(posted(true), 3) << "step 2 has room";
  EXPECT_EQ(posted(false), 3);
  narrow.complete(true, 0);
  (void)on_narrow.poll();
  EXPECT_EQ(posted(true), 2) << "step 3 has none";
  EXPECT_EQ(on_narrow.cause().status, Status::kOk);

  ScriptedEndpoint narrower(1, {2, 0}, 1);
  Machine on_narrower;
  ASSERT_EQ(on_narrower.init(narrower, MachineConfig()), Status::kOk);
  ASSERT_EQ(on_narrower.start(program, buffers, op, 64), Status::kOk);
  (void)on_narrower.poll();
  narrower.complete(false, 1);
  for (int poll = 0; poll < 10; ++poll) (void)on_narrower.poll();
  EXPECT_EQ(on_narrower.cause().status, Status::kTooLarge);
  EXPECT_EQ(on_narrower.cause().peer, 2u);
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
  machine.set_step_limit(2);
  begin();
  EXPECT_EQ(endpoint.posts.size(), 2u);
  EXPECT_EQ(finish(), Status::kBusy);
  EXPECT_TRUE(endpoint.posts.empty());
  EXPECT_EQ(machine.stall_report().step, 2);
  EXPECT_FALSE(machine.stall_report().waiting);
  machine.set_step_limit(1000);
  EXPECT_EQ(finish(), Status::kOk);
}

TEST_F(MachineTest, StallReportIsOfTheOldest) {
  init();
  EXPECT_FALSE(machine.stall_report().waiting);
  begin();
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
  // check_program cannot detect this: the slot leaves the scratch memory.
  program.indices[3].mod = 0;
  init();
  run_malformed();
  EXPECT_EQ(machine.cause().peer, 1u);
}

TEST_F(MachineTest, OperationsKeepTheirPace) {
  // The copies of the blocks as they arrive, with a pace equal to i.
  program.actions[2].pace_ref = 2;
  ASSERT_EQ(check_program(program), Status::kOk);
  init();
  run();
}

TEST_F(MachineTest, AtMost255OperationsOfAnActionShareAStep) {
  // All copies are in step 1, with or without a block.
  program.actions[2].pace_ref = 1;
  program.actions[2].instances_ref = 4;
  program.counts_count = 5;
  program.counts[4].a = 255;
  ASSERT_EQ(check_program(program), Status::kOk);
  init();
  run();
  program.counts[4].a = 256;
  run_malformed();
}

TEST_F(MachineTest, APaceThatFallsOrLeavesItsPhaseEndsTheCollective) {
  // check_program cannot detect this: 0, 1, 0 and then beyond the last step.
  const OwnedProgram valid = program;
  init();
  program.actions[2].pace_ref = 3;  // i mod 2
  ASSERT_EQ(check_program(program), Status::kOk);
  run_malformed();
  Machine other;
  MachineConfig config{.deadline_ns = kD};
  ASSERT_EQ(other.init(endpoint, config), Status::kOk);
  program = valid;
  program.indices_count = 5;
  program.indices[4].coef = 2;
  program.actions[2].pace_ref = 4;
  ASSERT_EQ(check_program(program), Status::kOk);
  ASSERT_EQ(other.start(program, buffers, op, 64), Status::kOk);
  for (int i = 0; i < 1000 && other.poll() == Status::kBusy; ++i) {
    if (!endpoint.posts.empty()) endpoint.complete(endpoint.posts[0].send, endpoint.posts[0].link);
    endpoint.time += kD / 100;
  }
  EXPECT_EQ(other.cause().status, Status::kMalformed);
  EXPECT_EQ(other.cause().detector, 1u);
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

// A receive and a send that complete when they are posted.
TEST_F(MachineTest, LooksForWhatItAwaitsAndNoMore) {
  init();
  endpoint.on_post = [&](const ScriptedEndpoint::Post& post) {
    EXPECT_TRUE(endpoint.complete(post.send, post.link));
  };
  ASSERT_EQ(start(16), Status::kOk);
  ASSERT_EQ(machine.blocks(), 1u);
  endpoint.looks = endpoint.clock_readings = 0;
  EXPECT_EQ(machine.poll(), Status::kBusy);
  EXPECT_EQ(endpoint.looks, 1) << "the receive is posted before the look, which finds it";
  EXPECT_EQ(endpoint.clock_readings, 1) << "the send is awaited";
  EXPECT_EQ(machine.poll(), Status::kOk);
  EXPECT_EQ(endpoint.looks, 2);
  EXPECT_EQ(endpoint.clock_readings, 1) << "nothing is awaited";
}

// 16 steps for 10 blocks.
TEST(InstanceScheduler, TellsWhatItCountsFits) {
  OwnedProgram program = chain_program(5, false);
  EXPECT_TRUE(InstanceScheduler::fits(program, 10, 16));
  EXPECT_FALSE(InstanceScheduler::fits(program, 10, 15));
  EXPECT_FALSE(InstanceScheduler::fits(program, 11, 16));
  program.counts[1].a = -17;
  EXPECT_FALSE(InstanceScheduler::fits(program, 10, 16));
  EXPECT_TRUE(InstanceScheduler::fits(program, 10, 17));
}

}  // namespace
}  // namespace espalier::testing

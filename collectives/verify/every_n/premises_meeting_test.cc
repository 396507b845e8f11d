// Premise of "a stage alone" (docs/verifier.md): each stage of a phase is proven alone, so stages
// must not share ports, links or places for any N.

#include "collectives/verify/testing/premises.h"

namespace espalier::verify {
namespace {

constexpr const char* kPorts = "actions that go on at different paces may share a port or link";
constexpr const char* kPlaces = "actions that go on at different paces share a place";

class Meeting : public Premises {
 protected:
  // Rank 0 sends to rank 1 and to rank 2: block i in the steps `first` + `pace` * i.
  struct Times {
    Count first;
    std::int32_t pace = 1;
  };
  Premises& star(PortModel model, const Times& one, const Times& other, const Count& steps,
                 std::uint32_t ticks = 1) {
    begin("complete:3", Collective::kBroadcast);
    for (const std::uint32_t to : {1u, 2u}) {
      const Times& times = to == 1 ? one : other;
      Count arrival = times.first;
      arrival.a += static_cast<std::int32_t>(ticks) - 1;
      set(nodes[0], nodes[0].send(0, to, nodes[0].input()), times.first, times.pace);
      set(nodes[to], nodes[to].receive(0, 0, nodes[to].output()), arrival, times.pace);
    }
    for (NodeWriter& node : nodes) {
      node.program.port_model = model;
      node.program.send_ticks = node.program.latency_ticks = ticks;
    }
    return finish(steps);
  }
  static void set(NodeWriter& node, Action& action, const Count& first, std::int32_t pace) {
    action.t0_ref = node.count(first);
    action.pace_ref = node.pace(0, pace);
  }
};

TEST_F(Meeting, OneAfterTheOther) {
  star(PortModel::kOnePortDuplex, {{0, 0, 0, 0, 0}, 1}, {{0, 1, 0, 0, 0}, 2}, {-1, 3, 0, 0, 0});
  expect_proven();
}

TEST_F(Meeting, SharedPort) {
  star(PortModel::kOnePortDuplex, {{0, 0, 0, 0, 0}, 1}, {{5, 0, 0, 0, 0}, 2}, {4, 2, 0, 0, 0});
  expect_unproven(kPorts, 6);
}

TEST_F(Meeting, SharedPortOfLargeN) {
  // The first stage is over long before the second begins, but grows faster.
  star(PortModel::kOnePortDuplex, {{0, 0, 0, 0, 0}, 2}, {{5, 1, 0, 0, 0}, 1}, {5, 2, 0, 0, 0});
  expect_unproven(kPorts, 7);
}

TEST_F(Meeting, SharedPortOfOneStep) {
  star(PortModel::kOnePortDuplex, {{1, 0, 0, 0, 0}, 1}, {{0, 1, 0, 0, 0}, 2}, {-1, 3, 0, 0, 0});
  expect_unproven(kPorts, 1);
}

TEST_F(Meeting, SharedPortOfTicks) {
  // The last send of the first stage holds its port for two steps.
  star(PortModel::kOnePortDuplex, {{1, 0, 0, 0, 0}, 2}, {{0, 2, 0, 0, 0}, 2}, {0, 4, 0, 0, 0}, 2);
  expect_unproven(kPorts, 1);
}

TEST_F(Meeting, SimplexPort) {
  // Rank 1 passes blocks on from step 3 onward, while it still receives.
  begin("complete:3", Collective::kBroadcast);
  nodes[0].send(0, 1, nodes[0].input());
  nodes[1].receive(0, 0, nodes[1].output());
  set(nodes[1], nodes[1].send(0, 2, nodes[1].output(), 3), {3, 0, 0, 0, 0}, 2);
  set(nodes[2], nodes[2].receive(0, 1, nodes[2].output()), {3, 0, 0, 0, 0}, 2);
  for (NodeWriter& node : nodes) node.program.port_model = PortModel::kSimplex;
  finish(2, 2).expect_unproven(kPorts, 4);
}

TEST_F(Meeting, SharedLink) {
  begin("complete:2", Collective::kBroadcast);
  for (NodeWriter& node : nodes) node.program.segments = 2;
  for (const std::int32_t segment : {0, 1}) {
    const Count first{5 * segment, 0, 0, 0, 0};
    set(nodes[0], nodes[0].send(0, 1, nodes[0].operand(Buffer::kInput, segment)), first,
        1 + segment);
    set(nodes[1], nodes[1].receive(0, 0, nodes[1].operand(Buffer::kOutput, segment)), first,
        1 + segment);
  }
  finish(4, 2).expect_unproven(kPorts, 6);
}

// Rank 1 receives segment 0 from rank 0 in step i, and `segment` from rank 2 in step 2 + 2 * i.
class MeetingOperands : public Meeting {
 protected:
  void feed(std::int32_t segment, const Operand& one, const Operand& other) {
    const Count none{0, 0, 0, 0, 0}, second{1, 0, 0, 0, 0}, passed{2, 0, 0, 0, 0};
    nodes[0].send(0, 1, nodes[0].input());
    set(nodes[0], nodes[0].send(0, 2, nodes[0].input()), none, 2);
    set(nodes[2], nodes[2].receive(0, 0, nodes[2].output()), none, 2);
    if (segment == 1) {
      set(nodes[0], nodes[0].send(0, 2, nodes[0].operand(Buffer::kInput, 1)), second, 2);
      set(nodes[2], nodes[2].receive(0, 0, nodes[2].operand(Buffer::kOutput, 1)), second, 2);
    }
    nodes[1].receive(0, 0, one);
    set(nodes[1], nodes[1].receive(0, 2, other), passed, 2);
    Action& pass =
        nodes[2].send(0, 1, nodes[2].operand(Buffer::kOutput, segment), segment == 1 ? 1 : 2);
    set(nodes[2], pass, passed, 2);
  }
};

TEST_F(MeetingOperands, SlotsAfterSomeTurns) {
  // Slots 0, 1, 2, ... and 3, 4, 5, ... of six: block 4 and block 1 come into slot 4 in step 4.
  for (const bool shared : {true, false}) {
    begin("complete:3", Collective::kBroadcast, false, 1);
    for (NodeWriter& node : nodes) node.program.segments = 2;
    nodes[1].program.scratch_blocks = 12;
    const Operand one = nodes[1].slot(0, 6);
    Operand other = nodes[1].operand(Buffer::kScratch, 1);
    other.slot_ref = nodes[1].index({shared ? 0 : 6, 1, 3, 0, 6, 0, 0});
    feed(1, one, other);
    nodes[1].copy(0, nodes[1].output(), one);
    Action& copy = nodes[1].copy(0, nodes[1].operand(Buffer::kOutput, 1), other);
    set(nodes[1], copy, {2, 0, 0, 0, 0}, 2);
    finish(1, 2);
    shared ? expect_unproven(kPlaces, 5) : expect_proven();
  }
}

TEST_F(MeetingOperands, OutputBlocks) {
  begin("complete:3", Collective::kBroadcast);
  feed(0, nodes[1].output(), nodes[1].output());
  finish(1, 2).expect_unproven(kPlaces, 1);
}

// Two ranks exchange and combine their blocks in step i; the input is read again, later. So input
// and output are not the same memory, which neither stage alone shows.
TEST_F(MeetingOperands, InputAndOutput) {
  for (const bool copy_first : {true, false}) {
    begin("complete:2", Collective::kAllreduce);
    for (std::uint32_t me = 0; me < 2; ++me) {
      NodeWriter& node = nodes[me];
      node.program.scratch_blocks = 16;
      const auto copy = [&] {
        set(node, node.copy(0, node.slot(8, 8), node.input()), {2, 0, 0, 0, 0}, 2);
      };
      if (copy_first) copy();
      const Operand slot = node.slot(0, 8), own = node.input();
      node.send(0, 1 - me, own);
      node.receive(0, 1 - me, slot);
      node.combine(0, node.output(), me == 0 ? own : slot, me == 0 ? slot : own);
      if (!copy_first) copy();
    }
    finish(1, 2).expect_unknown(kPlaces);
    const Verdict brute = brute_force(20);
    EXPECT_TRUE(brute.valid) << brute.counterexample.message;
    EXPECT_FALSE(brute.in_place);
  }
}

}  // namespace
}  // namespace espalier::verify

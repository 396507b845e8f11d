// Premises of "one cycle of N" and "one instance" (docs/verifier.md): the instances of an action
// are exactly the blocks of its progressions, for every N up to 2^29, and every index advances in
// equal rounds.

#include "collectives/verify/every_n/progressions.h"
#include "collectives/verify/testing/premises.h"

namespace espalier::verify {
namespace {

constexpr const char* kNotAll = "its instances are not all of its blocks below N";
class Instances : public Premises {
 protected:
  // Both ends of the pipe have this number of instances.
  Premises& pipe_of(const Count& instances, const Count& steps) {
    begin_pipe();
    for (const std::uint32_t node : {0u, 1u}) {
      action(node).instances_ref = nodes[node].count(instances);
    }
    return finish(steps);
  }
  // Rank 0 also sends block i - `shift` to rank 2 in step i, which awaits none of them.
  Premises& send_in_vain(std::int32_t shift, const Count& instances) {
    begin_long_pipe(30);
    Operand from = nodes[0].input();
    from.block_ref = nodes[0].index(-shift, 1);
    nodes[0].send(0, 2, from).instances_ref = nodes[0].count(instances);
    return finish(30, 1);
  }
};

TEST_F(Instances, AreAsManyAsTheBlocks) {
  // 2, 2, 2, 5, 5, 5, ... instances: block 2 is missing for N = 3.
  pipe_of({-1, 0, 3, 0, 3}, {0, 1, 0, 0, 0}).expect_unproven(kNotAll, 3);
  // 3, 3, 3, 6, 6, 6, ...
  pipe_of({0, 0, 3, 0, 3}, {0, 1, 0, 0, 0}).expect_proven();
  // 5 + ceil(N / 2) instances.
  pipe_of({5, 0, 1, 0, 2}, {0, 1, 0, 0, 0}).expect_unproven(kNotAll, 12);
}

TEST_F(Instances, ClampMakesNoMore) {
  // N + 1 instances: the last one would move block N - 1 again. And 1, 2, 4, 5, 7, ... instances.
  for (const auto& [instances, blocks] :
       {std::pair{Count{1, 1, 0, 0, 0}, 1}, {Count{-1, 1, 1, 0, 2}, 3}}) {
    begin_long_pipe(10);
    action(0).clamp = true;
    action(0).instances_ref = nodes[0].count(instances);
    finish(10, 1).expect_unproven(kNotAll, blocks);
  }
}

TEST_F(Instances, BeginWithTheirFirstBlock) {
  begin_pipe();
  for (const std::uint32_t node : {0u, 1u}) {
    Action& transfer = action(node);
    Operand& moved = node == 0 ? transfer.a : transfer.into;
    moved.block_ref = nodes[node].index(1, 1);
  }
  finish(-1, 1).expect_refused(Property::kDataFlow, 1);
}

TEST_F(Instances, BeginInThePhase) {
  // Rank 2 would receive block 0 in step -1.
  begin_pipe("complete:3");
  nodes[0].send(-1, 2, nodes[0].input());
  nodes[2].receive(-1, 0, nodes[2].output());
  finish(0, 1).expect_unproven(kNotAll, 1);
}

TEST_F(Instances, ThatBeginBelowBlock0AreCounted) {
  send_in_vain(5, {0, 1, 0, 0, 0}).expect_unproven(kNotAll, 6);
  // N = 1 and 2^29 have none; N = 3 has 4093.
  send_in_vain(10, {0, -1, 4096, -2, 4096}).expect_unproven(kNotAll, 3);
}

TEST_F(Instances, OfTheLastNAreCounted) {
  // Instance 2^29, the last of N = 2^29, sends block 0.
  send_in_vain(1 << 29, {1, 1, 0, 0, 0});
  const Program& program = programs[0];
  EXPECT_EQ(count_value(program.counts[program.actions[2].instances_ref], kMaxBlocks),
            (1 << 29) + 1);
  EXPECT_EQ(index_value(program, program.actions[2].a.block_ref, 1 << 29), 0);
  expect_unknown("its blocks begin too far below 0");
  // Beyond that they do not count.
  send_in_vain(kFar, {1, 1, 0, 0, 0}).expect_proven();
}

TEST_F(Instances, FirstStepsGrowInProportion) {
  // t0 = ceil(N / 2) - 1: for N = 3 the last block is cut off. And t0 = 5 - N: with N = 6 block 0
  // would be sent in step -1.
  const struct {
    Count first, steps;
    std::int64_t blocks;
  } cases[] = {{{-1, 0, 1, 0, 2}, {0, 1, 0, 0, 0}, 3}, {{5, -1, 0, 0, 0}, {5, 0, 0, 0, 0}, 6}};
  for (const auto& [first, steps, blocks] : cases) {
    begin_pipe();
    for (const std::uint32_t node : {0u, 1u}) action(node).t0_ref = nodes[node].count(first);
    finish(steps).expect_unproven("its first step does not grow in proportion to N", blocks);
  }
}

TEST_F(Instances, LinksAndSegmentsRepeat) {
  // Block i over link i; there is one.
  begin_pipe();
  action(0).link_ref = nodes[0].index(0, 1);
  finish(0, 1).expect_unproven("its links do not repeat", 2);
  begin_pipe();
  action(0).link_ref = nodes[0].index(0, 1, 2);
  finish(0, 1).expect_refused(Property::kForm, 2);
  begin_pipe();
  action(0).a.segment_ref = nodes[0].index(0, 1);
  action(1).into.segment_ref = nodes[1].index(0, 1);
  finish(0, 1).expect_unproven("its segments do not repeat", 2);
}

// 2^60 * i overflows for i = 8: the slots are 0, 1, 2, 0, 1, 2, 0, 1, 1, ...
TEST_F(Instances, IndicesDoNotOverflow) {
  for (const bool overflows : {false, true}) {
    begin("complete:2", Collective::kBroadcast, false, 1);
    nodes[0].send(0, 1, nodes[0].input());
    NodeWriter& node = nodes[1];
    node.program.scratch_blocks = 3;
    Operand slot = node.slot(0, 3);
    node.copy(0, node.output(), slot);
    if (overflows) {
      slot.slot_ref = node.sum_of({{kFar, kFar, 0, 0, 0, 0, 0, 0}});
      node.program.indices[slot.slot_ref].mod = 3;
    }
    node.receive(0, 0, slot);
    finish(0, 1);
    overflows ? expect_unproven("its indices overflow for large N", 9) : expect_proven();
  }
}

// Rank 0 puts its own input before the data of rank 1.
class Operands : public Premises {
 protected:
  void begin_reduce(std::uint32_t segments = 1) {
    begin("complete:2", Collective::kReduce);
    for (NodeWriter& node : nodes) node.program.segments = segments;
    nodes[0].program.scratch_blocks = 8;
    nodes[0].receive(0, 1, nodes[0].slot(0, 8));
    nodes[0].combine(0, nodes[0].output(), nodes[0].input(), nodes[0].slot(0, 8));
    nodes[1].send(0, 0, nodes[1].input());
  }
  Operand& left() { return nodes[0].program.actions[1].a; }
};

TEST_F(Operands, AreTheSameBlocks) {
  begin_reduce();
  finish(0, 1).expect_proven();
  for (const auto& [first, each] : {std::pair{0, 2}, {1, 1}}) {
    begin_reduce();
    left().block_ref = nodes[0].index(first, each);
    finish(0, 1).expect_unproven("it mixes blocks", each);
  }
}

TEST_F(Operands, AreTheSameSegment) {
  // Both segments are combined, each with the other one of rank 0.
  begin("complete:2", Collective::kReduce);
  for (NodeWriter& node : nodes) node.program.segments = 2;
  nodes[0].program.scratch_blocks = 8;
  for (const std::int32_t segment : {0, 1}) {
    Operand slot = nodes[0].slot(4 * segment, 4);
    slot.segment_ref = nodes[0].index(segment, 0);
    nodes[0].receive(segment, 1, slot);
    nodes[0].combine(segment, nodes[0].operand(Buffer::kOutput, segment),
                     nodes[0].operand(Buffer::kInput, 1 - segment), slot);
    nodes[1].send(segment, 0, nodes[1].operand(Buffer::kInput, segment));
  }
  finish(0, 2, 2).expect_unproven("it mixes segments", 1);
}

TEST_F(Operands, AreInTheOwnSegment) {
  // A scatter in which rank 1 keeps segment 2, which it passes on, in its OUTPUT. That holds
  // segment 1 alone.
  begin("complete:3", Collective::kScatter);
  const auto part = [this](std::uint32_t node, std::int32_t segment) {
    return nodes[node].operand(node == 0 ? Buffer::kInput : Buffer::kOutput, segment);
  };
  for (const std::int32_t segment : {1, 2}) {
    nodes[0].send(segment - 1, 1, part(0, segment));
    nodes[1].receive(segment - 1, 0, part(1, segment));
  }
  nodes[1].send(2, 2, part(1, 2), 1);
  nodes[2].receive(2, 1, part(2, 2));
  nodes[0].copy(0, nodes[0].output(), nodes[0].input());
  finish(1, 2, 2).expect_refused(Property::kDataFlow, 1);
}

TEST_F(Operands, AreOfBuffersThatExist) {
  // Rank 1 passes its input on by its OUTPUT, which only the root has.
  begin_reduce();
  nodes[1].copy(0, nodes[1].output(), nodes[1].input());
  finish(0, 1).expect_refused(Property::kDataFlow, 1);
}

}  // namespace
}  // namespace espalier::verify

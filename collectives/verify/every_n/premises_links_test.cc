// Premises of "progressions of both ends", "first blocks", "first steps of one block" and "one N"
// (docs/verifier.md): both ends of a link name the same progressions, and data flow alike for all
// of their blocks.

#include <algorithm>

#include "collectives/verify/testing/premises.h"

namespace espalier::verify {
namespace {

class Ends : public Premises {
 protected:
  // Rank 0 sends two segments over the router, on links of two lanes, segment k from step firsts[k]
  // on. Rank 1 awaits them in the order of its `awaited`.
  Premises& lanes(const std::vector<std::int32_t>& firsts,
                  const std::vector<std::int32_t>& awaited) {
    begin("fattree:k=2,h=1,c=2", Collective::kBroadcast, true);
    for (NodeWriter& node : nodes) node.program.segments = 2;
    nodes[2].program.scratch_blocks = 16;
    std::int32_t last = 0;
    for (const std::int32_t segment : {0, 1}) {
      const std::int32_t first = firsts[static_cast<std::size_t>(segment)];
      Operand kept = nodes[2].slot(8 * segment, 8);
      kept.segment_ref = nodes[2].index(segment, 0);
      nodes[0].send(first, 2, nodes[0].operand(kInput, segment));
      nodes[2].receive(first, 0, kept);
      nodes[2].send(first + 1, 1, kept, 1);
      last = std::max(last, first + 1);
    }
    for (const std::int32_t segment : awaited) {
      const std::int32_t first = firsts[static_cast<std::size_t>(segment)];
      nodes[1].receive(first + 1, 2, nodes[1].operand(kOutput, segment));
    }
    return finish(last, 1);
  }
};

TEST_F(Ends, BeginInTheSameStep) {
  begin_pipe();
  action(1).t0_ref = nodes[1].count(1, 0);
  finish(1, 1).expect_refused(Property::kDeadlock, 1);
}

TEST_F(Ends, NameTheSameBlocks) {
  // Rank 0 sends blocks 1, 0, 3, 2, ...; N is even.
  begin_pipe();
  const std::uint8_t block = nodes[0].sum_of({{-2, 1, 0, 0, 2, 0, 0, 0}});
  nodes[0].program.indices[block].coef = nodes[0].program.indices[block].off = 1;
  action(0).a.block_ref = block;
  for (NodeWriter& node : nodes) node.program.residue_mod = 2;
  finish(0, 1).expect_refused(Property::kMatching, 2);
}

TEST_F(Ends, NameTheSameSegments) {
  begin_pipe();
  for (NodeWriter& node : nodes) node.program.segments = 2;
  nodes[0].send(1, 1, nodes[0].operand(kInput, 1));
  nodes[1].receive(1, 0, nodes[1].operand(kOutput, 0));
  action(1).into.segment_ref = nodes[1].index(1, 0);
  finish(0, 2, 2).expect_refused(Property::kMatching, 1);
}

TEST_F(Ends, NameTheSameLane) {
  lanes({0, 0}, {0, 1}).expect_proven();
  lanes({0, 0}, {1, 0}).expect_refused(Property::kMatching, 1);
  // The two share steps only for N >= 4.
  lanes({0, 3}, {1, 0});
  expect_unproven("the ends of link router 2 (level 1) -> rank 1 go on differently", 4);
}

TEST_F(Ends, NameTheSameLaneByInstances) {
  // Rank 0 sends segments 0 and 1 in turn: in step i block i - 1 of segment 1, then block i of
  // segment 0.
  for (const std::int32_t before : {1, 0}) {
    begin("fattree:k=2,h=1,c=2", Collective::kBroadcast, true);
    for (NodeWriter& node : nodes) node.program.segments = 2;
    nodes[2].program.scratch_blocks = 16;
    Operand both = nodes[0].input();
    both.segment_ref = nodes[0].index(0, 1, 2);
    both.block_ref = nodes[0].index({0, 1, 0, 2, 0, 0, 0});
    Action& send = nodes[0].send(0, 2, both);
    send.instances_ref = nodes[0].count(0, 2);
    send.pace_ref = nodes[0].index({0, 1, 1, 2, 0, 0, 0});
    for (const std::int32_t segment : {before, 1 - before}) {
      Operand kept = nodes[2].slot(8 * segment, 8);
      kept.segment_ref = nodes[2].index(segment, 0);
      nodes[2].receive(segment, 0, kept);
      nodes[2].send(segment + 1, 1, kept, 1);
      nodes[1].receive(segment + 1, 2, nodes[1].operand(kOutput, segment));
    }
    finish(2, 1);
    before == 1 ? expect_proven() : expect_refused(Property::kMatching, 2);
  }
}

TEST_F(Ends, GoOnAlike) {
  // Rank 0 sends in every second step, rank 1 awaits a block in every step.
  begin_pipe();
  action(0).pace_ref = nodes[0].pace(0, 2);
  finish(-1, 2).expect_refused(Property::kDeadlock, 2);
}

TEST_F(Ends, BeginAlikeForEveryN) {
  // Rank 1 awaits block 0 in step N.
  begin_pipe();
  action(1).t0_ref = nodes[1].count(0, 1);
  finish(0, 2).expect_refused(Property::kDeadlock, 1);
}

TEST_F(Ends, AreOfTheSamePhase) {
  begin_pipe();
  const Count steps{0, 1, 0, 0, 0};
  finish_phases({steps, steps}, {{1, 0}, {0, 1}}, {0, 2, 0, 0, 0});
  expect_refused(Property::kDeadlock, 1);
}

class Data : public Premises {
 protected:
  // Rank 0 combines its own input with the data of rank 1.
  void begin_reduce() {
    begin("complete:2", Collective::kReduce);
    nodes[0].program.scratch_blocks = 8;
    nodes[0].receive(0, 1, nodes[0].slot(0, 8));
    nodes[1].send(0, 0, nodes[1].input());
  }
  void combine(std::int32_t first) {
    nodes[0].combine(first, nodes[0].output(), nodes[0].input(), nodes[0].slot(0, 8));
  }
  void overwrite(std::int32_t first) { nodes[0].copy(first, nodes[0].output(), nodes[0].input()); }
};

TEST_F(Data, TheLastWriterInTimeCounts) {
  begin_reduce();
  overwrite(1);
  combine(0);
  finish(1, 1).expect_refused(Property::kDataFlow, 1);
  // The other way round the combination stays.
  begin_reduce();
  combine(1);
  action(0, 1).after = 1;
  overwrite(0);
  finish(1, 1).expect_proven();
}

TEST_F(Data, TheLastPhaseCounts) {
  begin_reduce();
  combine(0);
  action(0, 1).t0_ref = nodes[0].count(3, 0);
  action(0, 1).after = 3;
  overwrite(0);
  const Count one{3, 1, 0, 0, 0}, other{0, 1, 0, 0, 0};
  finish_phases({one, other}, {{2, 1}, {1, 0}}, {3, 2, 0, 0, 0});
  expect_refused(Property::kDataFlow, 1);
}

TEST_F(Data, AllFirstBlocksCount) {
  // Blocks 0, 2, 4, ... only.
  begin_pipe();
  for (const std::uint32_t node : {0u, 1u}) {
    Operand& moved = node == 0 ? action(0).a : action(1).into;
    moved.block_ref = nodes[node].index(0, 2);
    action(node).instances_ref = nodes[node].count(Count{0, 0, 1, 0, 2});
  }
  finish({-3, 0, 4, 0, 2}, 4).expect_refused(Property::kDataFlow, 2);
}

TEST_F(Data, SlotsHoldTheirSegment) {
  // Rank 1 copies segment 1 from the slot of segment 0.
  begin_pipe();
  for (NodeWriter& node : nodes) node.program.segments = 2;
  nodes[1].program.scratch_blocks = 4;
  action(1).into = nodes[1].slot(0, 4);
  nodes[1].copy(0, nodes[1].output(), nodes[1].slot(0, 4));
  Operand other = nodes[1].slot(0, 4);
  other.segment_ref = nodes[1].index(1, 0);
  nodes[1].copy(0, nodes[1].operand(kOutput, 1), other);
  finish(0, 1).expect_unproven("a place does not hold the block that is read from it", 1);
}

// Rank 0 has the sum of all in OUTPUT only after rank 1 has been sent OUTPUT as phase 0 left it.
TEST_F(Data, AreThoseOfTheEarlierPhase) {
  for (const bool sums : {true, false}) {
    begin("complete:2", Collective::kAllreduce);
    NodeWriter& root = nodes[0];
    root.program.scratch_blocks = 8;
    nodes[1].send(0, 0, nodes[1].input());
    root.receive(0, 1, root.slot(0, 8));
    if (sums) {
      root.combine(0, root.output(), root.input(), root.slot(0, 8));
    } else {
      root.copy(0, root.output(), root.input());
    }
    root.send(0, 1, root.output());
    nodes[1].receive(0, 0, nodes[1].output());
    const Count steps{0, 1, 0, 0, 0};
    finish_phases({steps, steps}, {{2, 1}, {1, 1}}, {0, 2, 0, 0, 0});
    sums ? expect_proven() : expect_refused(Property::kDataFlow, 1);
  }
}

// Programs with one N.
class OneN : public Premises {
 protected:
  void one_block() {
    for (NodeWriter& node : nodes) node.program.blocks[0] = {0, 0};
  }
  static Operand run_of(NodeWriter& node, Buffer buffer, std::int32_t segment,
                        std::uint16_t segment_count, std::int32_t slot = 0) {
    Operand operand = node.operand(buffer, segment);
    operand.slot_ref = node.index(slot, 0);
    operand.segment_count = segment_count;
    return operand;
  }
};

TEST_F(OneN, IsThatOfTheResidue) {
  // Two blocks come into one slot. Messages are not cut, but N = 2 (mod 3).
  begin_pipe();
  one_block();
  for (NodeWriter& node : nodes) {
    node.program.residue_mod = 3;
    node.program.residue = 2;
  }
  nodes[1].program.scratch_blocks = 1;
  action(1).into = nodes[1].slot(0, 1);
  nodes[1].copy(0, nodes[1].output(), nodes[1].slot(0, 1));
  finish(0, 1).expect_refused(Property::kHazards, 2);
}

TEST_F(OneN, PortsAreChecked) {
  begin_pipe();
  one_block();
  for (NodeWriter& node : nodes) node.program.segments = 2;
  nodes[0].send(0, 1, nodes[0].operand(kInput, 1));
  nodes[1].receive(0, 0, nodes[1].operand(kOutput, 1));
  finish(1, 0).expect_refused(Property::kPorts, 1);
}

// Segments 0 and 1 go over the two lanes to the router, in one message or in two.
TEST_F(OneN, RunsAreTheSameAtBothEnds) {
  for (const std::uint16_t segment_count : {2, 1}) {
    begin("fattree:k=2,h=1,c=2", Collective::kBroadcast, true);
    one_block();
    for (NodeWriter& node : nodes) node.program.segments = 2;
    nodes[2].program.scratch_blocks = 2;
    nodes[0].send(0, 2, run_of(nodes[0], kInput, 0, 2));
    for (std::int32_t segment = 0; segment < 2; segment += segment_count) {
      nodes[2].receive(0, 0, run_of(nodes[2], Buffer::kScratch, segment, segment_count, segment));
    }
    nodes[2].send(1, 1, run_of(nodes[2], Buffer::kScratch, 0, 2), 1);
    nodes[1].receive(1, 2, run_of(nodes[1], kOutput, 0, 2));
    finish(2, 0);
    segment_count == 2 ? expect_proven() : expect_refused(Property::kMatching, 1);
  }
}

}  // namespace
}  // namespace espalier::verify

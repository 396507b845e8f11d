// Premises of the proof for every N (docs/verifier.md) in programs with a head: instances that
// exist once, and progressions that do not begin in the first stride of blocks.

#include <utility>

#include "collectives/verify/testing/premises.h"

namespace espalier::verify {
namespace {

class Head : public Premises {
 protected:
  // The instances move the blocks first, first + 1, ...
  Action& from_block(std::uint32_t node, Action& action, std::int32_t first) {
    for (const auto& [present, operand] : {std::pair{action.has_into, &action.into},
                                           {action.has_a, &action.a},
                                           {action.has_b, &action.b}}) {
      if (present) operand->block_ref = nodes[node].index(first, 1);
    }
    return action;
  }
  // One instance, on block `block`.
  Action& once(std::uint32_t node, Action& action, std::int32_t block = 0) {
    action.instances_ref = nodes[node].count({1, 0, 0, 0, 0});
    return from_block(node, action, block);
  }
  // It begins in step a + b * N.
  void begin_in(std::uint32_t node, Action& action, std::int32_t a, std::int32_t b) {
    action.t0_ref = nodes[node].count({a, b, 0, 0, 0});
  }
  void one_port() {
    for (NodeWriter& node : nodes) node.program.port_model = PortModel::kOnePortDuplex;
  }

  // Rank 0 sends rank 1 the blocks from `head` onward in the steps from `step` onward, and each
  // earlier block once, block i in step i.
  void begin_headed(std::int32_t head, std::int32_t step) {
    begin("complete:2", Collective::kBroadcast);
    for (std::int32_t block = 0; block < head; ++block) {
      once(0, nodes[0].send(block, 1, nodes[0].input()), block);
      once(1, nodes[1].receive(block, 0, nodes[1].output()), block);
    }
    from_block(0, nodes[0].send(step, 1, nodes[0].input()), head);
    from_block(1, nodes[1].receive(step, 0, nodes[1].output()), head);
  }

  // Block 0 is sent once, in step N - 1 + `late`, the others from step `step` onward.
  void begin_tailed(std::int32_t late, std::int32_t step) {
    begin("complete:2", Collective::kBroadcast);
    one_port();
    from_block(0, nodes[0].send(step, 1, nodes[0].input()), 1);
    from_block(1, nodes[1].receive(step, 0, nodes[1].output()), 1);
    begin_in(0, once(0, nodes[0].send(0, 1, nodes[0].input())), late - 1, 1);
    begin_in(1, once(1, nodes[1].receive(0, 0, nodes[1].output())), late - 1, 1);
  }
};

TEST_F(Head, IsProven) {
  begin_headed(1, 1);
  finish(0, 1).expect_proven();
  begin_headed(3, 3);
  finish(0, 1).expect_proven();
}

TEST_F(Head, IsNotTooLong) {
  begin_headed(5, 5);
  finish(0, 1).expect_unknown("its instances are not all of its blocks below N");
}

// All blocks below the end of the head, and one stride more, are looked at.
TEST_F(Head, BlocksThatDoNotArrive) {
  for (const std::int32_t astray : {0, 1, 2, 3}) {
    begin("complete:2", Collective::kBroadcast);
    nodes[1].program.scratch_blocks = 16;
    const auto place = [&](std::int32_t block) {
      return block == astray ? nodes[1].slot(0, 16) : nodes[1].output();
    };
    for (std::int32_t block = 0; block < 3; ++block) {
      once(0, nodes[0].send(block, 1, nodes[0].input()), block);
      once(1, nodes[1].receive(block, 0, place(block)), block);
    }
    from_block(0, nodes[0].send(3, 1, nodes[0].input()), 3);
    from_block(1, nodes[1].receive(3, 0, place(3)), 3);
    finish(0, 1).expect_refused(Property::kDataFlow, astray + 1);
  }
}

// A single instance that overwrites a later block, which the others have written.
TEST_F(Head, DataOfASingleInstance) {
  begin("complete:2", Collective::kReduce);
  for (NodeWriter& node : nodes) node.program.scratch_blocks = 4;
  nodes[1].send(0, 0, nodes[1].input());
  nodes[0].receive(0, 1, nodes[0].slot(0, 4));
  nodes[0].combine(0, nodes[0].output(), nodes[0].input(), nodes[0].slot(0, 4));
  once(0, nodes[0].copy(2, nodes[0].output(), nodes[0].input()), 2);
  finish(0, 1).expect_refused(Property::kDataFlow, 3);
}

// The ends of a link: all blocks from 1 onward are awaited, only block 1 is sent.
TEST_F(Head, BothEndsGoOn) {
  begin_headed(1, 1);
  nodes[0].program.actions[1].instances_ref = nodes[0].count({1, 0, 0, 0, 0});
  finish(0, 1);
  EXPECT_FALSE(proof().valid);
  expect_wrong_from(3);
}

// N* counts the head: block 18 is the first that is received into a slot in use. All events of the
// first blocks are in two steps: ranks 2, 3 and 4 pass on one block each.
TEST_F(Head, HazardsAfterTheHead) {
  const auto make = [this](std::uint32_t slots) -> Premises& {
    begin("complete:5", Collective::kBroadcast, false, 16);
    for (NodeWriter& node : nodes) node.program.scratch_blocks = slots;
    for (const std::uint32_t rank : {2u, 3u, 4u}) {
      const auto block = static_cast<std::int32_t>(rank - 2);
      const Operand slot = nodes[rank].slot(0, 1);
      once(0, nodes[0].send(0, rank, nodes[0].input()), block);
      once(rank, nodes[rank].receive(0, 0, slot), block);
      once(rank, nodes[rank].send(1, 1, slot, 1), block);
      once(1, nodes[1].receive(1, rank, nodes[1].output()), block);
      nodes[0].send(1, rank, nodes[0].input());
      nodes[rank].receive(1, 0, nodes[rank].output());
    }
    const Operand slot = nodes[1].slot(0, slots);
    from_block(0, nodes[0].send(0, 1, nodes[0].input()), 3);
    from_block(1, nodes[1].receive(0, 0, slot), 3);
    from_block(1, nodes[1].copy(0, nodes[1].output(), slot), 3);
    return finish(1, 1);
  };
  make(15).expect_refused(Property::kHazards, 19);
  make(16).expect_proven();
}

TEST_F(Head, SlotsOfSingleInstancesExist) {
  const auto make = [this](std::int32_t slot) -> Premises& {
    begin("complete:2", Collective::kBroadcast);
    nodes[0].send(0, 1, nodes[0].input());
    nodes[1].receive(0, 0, nodes[1].output());
    nodes[1].program.scratch_blocks = 2;
    once(1, nodes[1].copy(0, nodes[1].slot(slot, 1), nodes[1].output()));
    return finish(0, 1);
  };
  make(1).expect_proven();
  make(2).expect_refused(Property::kClaims, 1);
}

// A single instance is in one step only, so another progression may have its port in the others.
TEST_F(Head, PortsInOneStep) {
  begin_headed(1, 1);
  one_port();
  finish(0, 1).expect_proven();
  begin_headed(2, 1);  // blocks 1 and 2 in step 1; N = 3, 6, ...
  one_port();
  for (NodeWriter& node : nodes) node.program.residue_mod = 3;
  finish(-1, 1).expect_refused(Property::kPorts, 3);
}

// On a line of five, rank 1 sends rank 3 block 0 once, in step 1, over the link to rank 2, which
// carries every block to rank 2 from step `step` onward.
TEST_F(Head, RoutesInOneStep) {
  const auto make = [this](std::int32_t step) -> Premises& {
    begin("mesh:1x5", Collective::kBroadcast);
    const auto send = [this](std::int32_t at, std::uint32_t from, std::uint32_t to,
                             std::int32_t after) {
      const Operand source = from == 0 ? nodes[from].input() : nodes[from].output();
      return std::pair(&nodes[from].send(at, to, source, after),
                       &nodes[to].receive(at, from, nodes[to].output()));
    };
    const auto send_once = [&](std::int32_t at, std::uint32_t from, std::uint32_t to,
                               std::int32_t after) {
      const auto ends = send(at, from, to, after);
      once(from, *ends.first);
      once(to, *ends.second);
    };
    const auto send_others = [&](std::int32_t at, std::uint32_t from, std::uint32_t to) {
      const auto ends = send(at, from, to, 1);
      from_block(from, *ends.first, 1);
      from_block(to, *ends.second, 1);
    };
    (void)send(0, 0, 1, 0);
    (void)send(step, 1, 2, step);
    send_once(1, 1, 3, 1);
    send_others(step + 2, 2, 3);
    send_once(step + 2, 3, 4, step + 1);
    send_others(step + 3, 3, 4);
    for (NodeWriter& node : nodes) node.program.contention = ContentionGuarantee::kSlot;
    return finish(step + 2, 1);
  };
  make(2).expect_proven();
  make(1);
  EXPECT_EQ(proof().counterexample.property, Property::kLinks);
  expect_wrong_from(1);
}

// Two stages on one port: the last step of the others is N - 2 + step.
TEST_F(Head, PortsOfTheTail) {
  begin_tailed(0, 0);
  finish(0, 1).expect_proven();
  begin_tailed(0, 1);
  finish(0, 1).expect_unproven("actions that go on at different paces may share a port or link", 2);
  begin_tailed(1, 1);
  finish(1, 1).expect_proven();
}

// Two blocks per two steps: blocks 2, 4, ... in steps 3, 5, ..., block 0 in step N - 1. These are
// never the same steps only because N is odd.
TEST_F(Head, ResiduesKeepStagesApart) {
  const auto make = [this](std::uint32_t residue, std::int32_t steps) -> Premises& {
    begin("complete:3", Collective::kBroadcast);
    const auto send = [&](std::int32_t step, std::uint32_t to, std::int32_t block) {
      for (const std::uint32_t node : {0u, to}) {
        NodeWriter& writer = nodes[node];
        Action& action = node == 0 ? writer.send(step, to, writer.input())
                                   : writer.receive(step, 0, writer.output());
        (node == 0 ? action.a : action.into).block_ref = writer.index(block, 2);
      }
    };
    send(0, 1, 1);
    send(3, 1, 2);
    begin_in(0, once(0, nodes[0].send(0, 1, nodes[0].input())), -1, 1);
    begin_in(1, once(1, nodes[1].receive(0, 0, nodes[1].output())), -1, 1);
    send(1, 2, 0);
    send(0, 2, 1);
    for (NodeWriter& node : nodes) {
      node.program.residue_mod = 2;
      node.program.residue = residue;
    }
    return finish(steps, 1, 2);
  };
  make(1, 1).expect_proven();
  make(0, 0).expect_unproven("actions that go on at different paces may share a port or link", 4);
}

// Stages of one segment use separate blocks. Block 1 is in both: step N - 1 sends it again.
TEST_F(Head, BlocksOfTwoStages) {
  begin_tailed(1, 0);
  finish(1, 1).expect_proven();
  begin_tailed(1, 0);
  begin_in(0, once(0, nodes[0].send(0, 1, nodes[0].input()), 1), -1, 1);
  begin_in(1, once(1, nodes[1].receive(0, 0, nodes[1].output()), 1), -1, 1);
  finish(1, 1).expect_unproven("actions that go on at different paces share a place", 2);
}

// An operation may overwrite a slot without waiting for the receive into it if another operation on
// the same block did. Here that one is on block 1, which does not exist for N = 1.
TEST_F(Head, OperationsThatWaitForOthers) {
  const auto make = [this](std::int32_t block) -> Premises& {
    begin("complete:3", Collective::kReduce);
    for (NodeWriter& node : nodes) node.program.scratch_blocks = 9;
    nodes[1].send(0, 2, nodes[1].input());
    nodes[2].receive(0, 1, nodes[2].slot(0, 4));
    nodes[2].combine(0, nodes[2].slot(4, 5), nodes[2].slot(0, 4), nodes[2].input());
    nodes[2].send(1, 0, nodes[2].slot(4, 5), 1);
    nodes[0].receive(1, 2, nodes[0].slot(0, 4));
    nodes[0].combine(1, nodes[0].output(), nodes[0].input(), nodes[0].slot(0, 4));
    Operand slot = nodes[0].slot(8, 1);
    once(1, nodes[1].send(0, 0, nodes[1].input()));
    once(0, nodes[0].receive(0, 1, slot));
    once(0, nodes[0].copy(0, slot, nodes[0].input()), block);
    once(0, nodes[0].copy(1, slot, nodes[0].input()));
    return finish(1, 1);
  };
  make(0).expect_proven();
  make(1).expect_refused(Property::kHazards, 1);
}

}  // namespace
}  // namespace espalier::verify

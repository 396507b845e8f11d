// Premises of "first steps modulo T" and "loads of one period" (docs/verifier.md): ports, lanes and
// the links of routes.

#include <algorithm>

#include "collectives/verify/testing/premises.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::verify {
namespace {

class PortPremises : public Premises {
 protected:
  // Rank 0 sends to rank 1, and `second` steps later to rank 2, every `period` steps.
  Premises& star(PortModel model, std::int32_t second, std::int32_t period,
                 std::uint32_t ticks = 1) {
    begin("complete:3", Collective::kBroadcast);
    const auto flight = static_cast<std::int32_t>(ticks) - 1;
    for (const std::uint32_t to : {1u, 2u}) {
      const std::int32_t first = to == 1 ? 0 : second;
      nodes[0].send(first, to, nodes[0].input());
      nodes[to].receive(first + flight, 0, nodes[to].output());
    }
    for (NodeWriter& node : nodes) {
      node.program.port_model = model;
      node.program.send_ticks = node.program.latency_ticks = ticks;
    }
    return finish(second + flight + 1 - period, period, static_cast<std::uint32_t>(period));
  }
  // Rank 0 sends segment k to rank 1 over the router, on links of two lanes, from step firsts[k]
  // on.
  Premises& lanes(const std::vector<std::int32_t>& firsts, std::uint32_t ticks = 1) {
    begin("fattree:k=2,h=1,c=2", Collective::kBroadcast, true);
    const auto flight = static_cast<std::int32_t>(ticks);
    nodes[2].program.scratch_blocks = 8 * static_cast<std::uint32_t>(firsts.size());
    std::int32_t last = 0;
    for (std::size_t k = 0; k < firsts.size(); ++k) {
      const auto segment = static_cast<std::int32_t>(k);
      Operand kept = nodes[2].slot(8 * segment, 8);
      kept.segment_ref = nodes[2].index(segment, 0);
      nodes[0].send(firsts[k], 2, nodes[0].operand(Buffer::kInput, segment));
      nodes[2].receive(firsts[k] + flight - 1, 0, kept);
      nodes[2].send(firsts[k] + flight, 1, kept, 1);
      nodes[1].receive(firsts[k] + 2 * flight - 1, 2, nodes[1].operand(Buffer::kOutput, segment));
      last = std::max(last, firsts[k] + 2 * flight - 1);
    }
    for (NodeWriter& node : nodes) {
      node.program.segments = static_cast<std::uint32_t>(firsts.size());
      node.program.send_ticks = node.program.latency_ticks = ticks;
    }
    return finish(last, 1);
  }
  // Rank 0 sends `segments` segments in each step to the router, which sends them on to all others.
  Premises& wide(std::uint32_t segments, std::uint32_t arity) {
    begin("fattree:k=" + std::to_string(arity) + ",h=1,c=100", Collective::kBroadcast, true);
    const auto move = [&](std::uint32_t node, ActionKind kind, std::int32_t first,
                          std::uint32_t peer, Buffer buffer) {
      NodeWriter& writer = nodes[node];
      if (writer.program.indices_count == 0) writer.index(0, 0);
      Operand operand = writer.operand(buffer);
      operand.segment_ref = writer.index({0, 1, 0, 0, segments, 0, 0});
      operand.block_ref = writer.index({0, 1, 0, segments, 0, 0, 0});
      if (buffer == Buffer::kScratch) operand.slot_ref = writer.index(0, 1, 8 * segments);
      Action& action = kind == ActionKind::kSend ? writer.send(first, peer, operand)
                                                 : writer.receive(first, peer, operand);
      action.instances_ref = writer.count(0, as_int(segments));
      action.pace_ref = operand.block_ref;
      if (first > 0 && kind == ActionKind::kSend) action.after = 1;
    };
    move(0, ActionKind::kSend, 0, arity, Buffer::kInput);
    nodes[arity].program.scratch_blocks = 8 * segments;
    move(arity, ActionKind::kReceive, 0, 0, Buffer::kScratch);
    for (std::uint32_t rank = 1; rank < arity; ++rank) {
      move(arity, ActionKind::kSend, 1, rank, Buffer::kScratch);
      move(rank, ActionKind::kReceive, 1, arity, Buffer::kOutput);
    }
    for (NodeWriter& node : nodes) node.program.segments = segments;
    return finish(1, 1);
  }
  // Expects both methods to refuse N = 1 by a line that contains all `words`.
  void expect_line(const std::vector<std::string>& words) const {
    expect_refused(Property::kPorts, 1);
    for (const Verdict& verdict : {proof(), brute_force(1)}) {
      for (const std::string& word : words) {
        const std::string& line = verdict.counterexample.message;
        EXPECT_NE(line.find(word), std::string::npos) << "no '" << word << "' in: " << line;
      }
    }
  }
};

TEST_F(PortPremises, MessagesOfALinkThatNodesCount) {
  wide(64, 2).expect_proven();
  wide(65, 2);
  expect_line({"rank 0, step 0", "to node 2", "at most 64 messages of a link in a step",
               "sends more, on 100 lanes"});
}

TEST_F(PortPremises, MessagesOfAStepThatNodesCount) {
  wide(63, 5).expect_proven();
  wide(64, 5);
  expect_line({"router 5 (level 1), step 1", "after 255 other messages",
               "nodes send at most 255 in a step"});
}

TEST_F(PortPremises, SendsThatMeetForLargeN) {
  star(PortModel::kSingleSend, 10, 1).expect_refused(Property::kPorts, 11);
  star(PortModel::kMultiport, 10, 1).expect_proven();
}

TEST_F(PortPremises, ReceivesThatMeetSends) {
  // Rank 1 receives in even steps and passes on in the even steps from step 10 onward.
  const auto pass = [this](std::int32_t first) -> Premises& {
    begin("complete:3", Collective::kBroadcast);
    nodes[0].send(0, 1, nodes[0].input());
    nodes[1].receive(0, 0, nodes[1].output());
    nodes[1].send(first, 2, nodes[1].output());
    nodes[2].receive(first, 1, nodes[2].output());
    for (NodeWriter& node : nodes) node.program.port_model = PortModel::kSimplex;
    return finish(first - 1, 2, 2);
  };
  pass(10).expect_refused(Property::kPorts, 6);
  pass(11).expect_proven();
}

TEST_F(PortPremises, PortsAreHeldForTicks) {
  star(PortModel::kSingleSend, 9, 4, 2);  // one step after block 2 of the other
  expect_refused(Property::kPorts, 3);
  star(PortModel::kSingleSend, 7, 4, 2);  // one step before it
  expect_refused(Property::kPorts, 3);
  star(PortModel::kSingleSend, 6, 4, 2).expect_proven();
}

TEST_F(PortPremises, PortsAreHeldIntoTheNextPeriod) {
  star(PortModel::kMultiport, 5, 1, 2).expect_refused(Property::kPorts, 2);
}

TEST_F(PortPremises, LanesThatFillForLargeN) {
  lanes({0, 0, 10}).expect_refused(Property::kPorts, 11);
  lanes({0, 10}).expect_proven();
}

TEST_F(PortPremises, LanesThatAreHeldForTicks) {
  lanes({0, 0}, 2).expect_unproven("links of several lanes in the postal model", 2);
}

// Messages between ranks that are not neighbours cross the links of others.
class RoutePremises : public Premises {
 protected:
  // Ranks 1 and 2 send their parts to rank 0, both over the link 1 -> 0.
  void begin_gather(std::int32_t first, std::int32_t second, std::uint32_t ticks = 1) {
    begin("mesh:3x1", Collective::kGather);
    const auto part = [this](std::uint32_t node, Buffer buffer, std::int32_t segment) {
      return nodes[node].operand(buffer, segment);
    };
    const auto flight = static_cast<std::int32_t>(ticks) - 1;
    for (const std::int32_t from : {1, 2}) {
      const auto node = static_cast<std::uint32_t>(from);
      const std::int32_t step = from == 1 ? first : second;
      nodes[node].send(step, 0, part(node, Buffer::kInput, from));
      nodes[0].receive(step + flight, node, part(0, Buffer::kOutput, from));
    }
    nodes[0].copy(0, part(0, Buffer::kOutput, 0), part(0, Buffer::kInput, 0));
    for (NodeWriter& node : nodes) {
      node.program.contention = ContentionGuarantee::kSlot;
      node.program.send_ticks = node.program.latency_ticks = ticks;
    }
  }
  // The proof names an N for which a link carries too much; `blocks` is the least.
  void expect_loaded(std::int64_t blocks) const {
    const Verdict verdict = proof();
    ASSERT_FALSE(verdict.valid);
    const Counterexample& wrong = verdict.counterexample;
    EXPECT_EQ(wrong.property, Property::kLinks) << wrong.message;
    EXPECT_FALSE(brute_force(wrong.blocks).valid) << wrong.message;
    expect_wrong_from(blocks);
  }
};

TEST_F(RoutePremises, LoadsOfAPeriod) {
  begin_gather(0, 1);
  finish(0, 2, 2).expect_proven();
  EXPECT_FALSE(proof().async);
}

TEST_F(RoutePremises, LoadsThatMeetForLargeN) {
  // In even steps both, from step 10 onward.
  begin_gather(0, 10);
  finish(9, 2, 2);
  expect_loaded(6);
  // Block 0 of rank 2 leaves its last tick to block 1 of rank 1.
  begin_gather(0, 3, 2);
  finish(1, 4, 4);
  expect_loaded(2);
}

TEST_F(RoutePremises, LoadsUnderSkew) {
  begin_gather(0, 1);
  for (NodeWriter& node : nodes) node.program.contention = ContentionGuarantee::kAsync;
  finish(0, 2, 2);
  expect_loaded(1);
}

TEST_F(RoutePremises, LoadsOfTicks) {
  begin_gather(0, 1, 2);
  finish(0, 3, 3);
  expect_loaded(1);
  begin_gather(0, 2, 2);
  finish(0, 4, 4).expect_proven();
}

TEST_F(RoutePremises, LoadsOfSeveralStages) {
  // Rank 1 in every step, rank 2 in every second step from step 5 onward.
  begin_gather(0, 5);
  action(0, 1).pace_ref = nodes[0].pace(0, 2);
  action(2).pace_ref = nodes[2].pace(0, 2);
  finish(4, 2);
  expect_unproven("the routes of actions that go on at different paces are not followed", 6);
}

}  // namespace
}  // namespace espalier::verify

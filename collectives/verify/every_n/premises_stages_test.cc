// Premises of "one form of a stage", "one round of slots", "N = 1 .. N*" and "N = N*"
// (docs/verifier.md): one proof stands for ranks with the same form, for all rounds of slots, and
// for every N.

#include <set>

#include "base/testing/results.h"
#include "collectives/verify/every_n/stage_proof.h"
#include "collectives/verify/testing/premises.h"

namespace espalier::verify {
namespace {

// Every field changes the key. A field added to a struct does not compile here before it is tested.
class StageKey : public ::testing::Test {
 protected:
  StageKey() {
    form.all.resize(2);
    form.next_slot = {1, 0};
    form.written = {0, 1};
    keys.insert(stage_key(form));
  }
  template <typename Field, typename Value>
  void change(Field& field, Value to) {
    const Field before = field;
    ASSERT_NE(before, static_cast<Field>(to));
    field = static_cast<Field>(to);
    EXPECT_TRUE(keys.insert(stage_key(form)).second) << "field " << keys.size();
    field = before;
  }
  void change_operand(FormOperand& operand) {
    auto& [buffer, index] = operand;
    change(buffer, Buffer::kOutput);
    change(index, 9);
  }

  StageForm form;
  std::set<std::string> keys;
};

TEST_F(StageKey, HasEveryField) {
  auto& [window, stride, period, head, residue_mod, residue, single, slots_before, outputs, links,
         next_slot, slots, written, all] = form;
  change(window, 2);
  change(stride, 2);
  change(period, 2);
  change(head, 1);
  change(residue_mod, 1);
  change(residue, 1);
  change(single, true);
  change(slots_before, true);
  change(outputs, 1);
  change(links, 1);
  change(next_slot[1], 5);
  change(slots, 1);
  change(written[1], 2);
  for (FormProgression& one : all) {
    auto& [first, block, link, segment, after, kind, once, into, a, b] = one;
    change(first, 1);
    change(block, 1);
    change(link, 1);
    change(segment, 1);
    change(after, 1);
    change(kind, ActionKind::kCopy);
    change(once, true);
    change_operand(into);
    change_operand(a);
    change_operand(b);
  }
  next_slot.push_back(0);
  EXPECT_TRUE(keys.insert(stage_key(form)).second);
  written.push_back(0);
  EXPECT_TRUE(keys.insert(stage_key(form)).second);
  all.emplace_back();
  EXPECT_TRUE(keys.insert(stage_key(form)).second);
}

TEST_F(StageKey, TellsWhereAListEnds) {
  // The bytes of their numbers alone are the same: 7, 8, 1.
  StageForm one, other;
  one.next_slot = {7};
  one.slots = 8;
  one.written = {1, 0, 0, 0};
  other.next_slot = {7, 8};
  other.slots = 1;
  EXPECT_NE(stage_key(one), stage_key(other));
}

// N* alone stands for every smaller N only if each event waits by itself for the events it needs.
class LastRun : public ::testing::Test {
 protected:
  LastRun() {
    form.window = 4;
    form.stride = 2;
    form.period = 8;
    form.outputs = form.slots = 1;
  }
  void add(ActionKind kind, std::int64_t first, std::int32_t block, std::uint16_t after,
           Buffer into, Buffer a) {
    form.all.push_back({.first = first,
                        .block = block,
                        .after = after,
                        .kind = kind,
                        .into = {.buffer = into},
                        .a = {.buffer = a},
                        .b = {}});
  }
  // Sends block 0 two steps after it was copied to OUTPUT.
  void receive_copy_and_send(std::uint16_t after) {
    add(ActionKind::kReceive, 0, 0, 0, Buffer::kScratch, Buffer::kNone);
    add(ActionKind::kCopy, 1, 0, 1, Buffer::kOutput, Buffer::kScratch);
    add(ActionKind::kCopy, 2, 1, 0, Buffer::kOutput, Buffer::kInput);
    add(ActionKind::kSend, 3, 0, after, Buffer::kNone, Buffer::kOutput);
  }
  [[nodiscard]] StageProof proof() const { return prove_stage(form, 1 << 20); }

  StageForm form;
};

TEST_F(LastRun, IsEnoughWhereEventsWaitByThemselves) {
  receive_copy_and_send(2);
  const StageProof all = proof();
  EXPECT_EQ(all.wrong_at, 0);
  EXPECT_FALSE(all.undecided);
  EXPECT_EQ(all.max_blocks, 4);     // R (c + 2), c = floor((3 + 4 - 1) / 8)
  EXPECT_EQ(all.instances, 4 * 2);  // of that N alone
  EXPECT_EQ(all.sources[3].a, 1);
}

// With an even N the copy of block 1 in step 2, which runs after that of block 0, is waited for.
TEST_F(LastRun, IsNotWhereTheyWaitByOthers) {
  receive_copy_and_send(1);
  EXPECT_EQ(proof().wrong_at, 1);
}

// With an even N the copy in step 1 waits for the receive that the one in step 3 does not wait for.
TEST_F(LastRun, IsNotWhereOthersOverwriteFirst) {
  add(ActionKind::kReceive, 0, 0, 0, Buffer::kScratch, Buffer::kNone);
  add(ActionKind::kCopy, 1, 1, 1, Buffer::kScratch, Buffer::kInput);
  add(ActionKind::kCopy, 3, 0, 0, Buffer::kScratch, Buffer::kInput);
  EXPECT_EQ(proof().wrong_at, 1);
}

// Broadcasts whose rank 1 receives into slots and copies from there.
class Stages : public Premises {
 protected:
  void begin_copied(std::uint32_t window, std::uint32_t slots) {
    begin("complete:2", Collective::kBroadcast, false, window);
    nodes[0].send(0, 1, nodes[0].input());
    nodes[1].program.scratch_blocks = slots;
  }
  // The slot of block i: entry i mod 4 of a table, or `first` + i * `by` mod `mod`.
  Operand by_table(const std::uint8_t (&entries)[8]) {
    NodeWriter& node = nodes[1];
    node.program.table = {entries, sizeof entries};
    return node.slot_at(node.index(0, 1), node.sum_of({{1, 1, 0, 0, 4, 0, 0, 1}}));
  }
  Operand in_turn(std::int32_t first, std::int32_t by, std::uint32_t mod) {
    return nodes[1].slot_at(nodes[1].index(0, 1), nodes[1].index(first, by, mod));
  }
  void receive_and_copy(const Operand& into, const Operand& from, std::int32_t later = 0) {
    nodes[1].receive(0, 0, into);
    nodes[1].copy(later, nodes[1].output(), from).after = static_cast<std::uint16_t>(later);
  }
  // Slots `first` + i * `by` mod `mod`, which are read `later` steps after they were written.
  Premises& copied(std::uint32_t window, std::uint32_t slots, std::int32_t first, std::int32_t by,
                   std::uint32_t mod, std::int32_t later = 0) {
    begin_copied(window, slots);
    receive_and_copy(in_turn(first, by, mod), in_turn(first, by, mod), later);
    return finish(later, 1);
  }
};

TEST_F(Stages, OfAnotherAfterAreProvenToo) {
  topology = or_throw(topology::parse("complete:5"));
  programs = chain_broadcast(*topology);
  programs[3].actions[1].after = 0;
  expect_refused(Property::kHazards, 1);
}

TEST_F(Stages, SlotsThatMoveOnUnlike) {
  // Block 1 is received into slot 1 and copied from slot 0.
  begin_copied(1, 2);
  receive_and_copy(in_turn(0, 1, 2), in_turn(0, 0, 0));
  finish(0, 1).expect_unproven("a place does not hold the block that is read from it", 2);
  static constexpr std::uint8_t kEntries[] = {0, 0, 1, 0, 3, 0, 2, 0};
  begin_copied(1, 4);
  receive_and_copy(in_turn(0, 1, 4), by_table(kEntries));
  finish(0, 1).expect_refused(Property::kHazards, 3);
}

TEST_F(Stages, SlotsThatMoveOnUnlikeAndAreRight) {
  // Segment 0 takes slots 0 and 1 in turn, segment 1 always slot 0, one step later.
  begin_copied(1, 2);
  for (NodeWriter& node : nodes) node.program.segments = 2;
  nodes[0].send(1, 1, nodes[0].operand(Buffer::kInput, 1));
  receive_and_copy(in_turn(0, 1, 2), in_turn(0, 1, 2));
  Operand slot = in_turn(0, 0, 0);
  slot.segment_ref = nodes[1].index(1, 0);
  nodes[1].receive(1, 0, slot);
  nodes[1].copy(1, nodes[1].operand(Buffer::kOutput, 1), slot);
  finish(0, 2, 2).expect_proven();
  EXPECT_EQ(proof().period, 2);
}

TEST_F(Stages, SlotsOfALaterRound) {
  // Slots 2, 4, 6, of 6.
  copied(1, 6, 2, 2, 6).expect_refused(Property::kClaims, 3);
  static constexpr std::uint8_t kEntries[] = {0, 0, 1, 0, 2, 0, 9, 0};
  begin_copied(1, 4);
  receive_and_copy(by_table(kEntries), by_table(kEntries));
  finish(0, 1).expect_refused(Property::kClaims, 4);
  copied(1, 4, 0, 1, 0).expect_unproven("its slots do not repeat", 5);
}

// N*: the window. Block 15 comes into slot 0 while block 0 may still be under way.
TEST_F(Stages, HazardsOfTheWindow) {
  copied(16, 15, 0, 1, 15).expect_refused(Property::kHazards, 16);
  copied(16, 16, 0, 1, 16).expect_proven();
}

// N*: slots that are read many steps after they were written.
TEST_F(Stages, HazardsOfLateReads) {
  copied(2, 31, 0, 1, 31, 30).expect_refused(Property::kHazards, 32);
  copied(2, 32, 0, 1, 32, 30).expect_proven();
}

// N*: slots that another action writes many steps later, without a read after that.
TEST_F(Stages, HazardsOfLateWrites) {
  begin("complete:3", Collective::kBroadcast, false, 2);
  for (const std::uint32_t node : {1u, 2u}) nodes[0].send(0, node, nodes[0].input());
  nodes[1].program.scratch_blocks = 19;
  receive_and_copy(in_turn(0, 1, 19), in_turn(0, 1, 19));
  nodes[1].receive(20, 2, in_turn(0, 1, 19));
  nodes[2].receive(0, 0, nodes[2].output());
  nodes[2].send(20, 1, nodes[2].output());
  finish(20, 1).expect_refused(Property::kHazards, 20);
}

// N*: only every second N occurs. Blocks arrive in the order 1, 0, 3, 2, .... Block 5 is received
// into the slot of block 0 too early; N = 7 is the first to show that.
TEST_F(Stages, HazardsOfAResidue) {
  const auto make = [this](std::uint32_t slots) -> Premises& {
    begin_copied(4, slots);
    const auto block = [](NodeWriter& node, std::uint32_t mod) {
      const std::uint8_t ref = node.sum_of({{-2, 1, 0, 0, 2, 0, 0, 0}});
      node.program.indices[ref].coef = 1;
      node.program.indices[ref].off = 1;
      node.program.indices[ref].mod = mod;
      return ref;
    };
    action(0).a.block_ref = block(nodes[0], 0);
    const Operand slot = nodes[1].slot_at(block(nodes[1], 0), block(nodes[1], slots));
    receive_and_copy(slot, slot);
    action(1, 1).into.block_ref = slot.block_ref;
    for (const std::uint32_t node : {0u, 1u}) {
      nodes[node].program.residue_mod = 2;
      nodes[node].program.residue = 1;
      for (std::uint32_t i = 0; i < nodes[node].program.actions_count; ++i) {
        action(node, i).instances_ref = nodes[node].count(1, 1);
      }
    }
    return finish(1, 1);
  };
  make(5).expect_refused(Property::kHazards, 7);
  make(7).expect_proven();
}

// Whether input and output may be the same memory, in an allreduce of two ranks.
class SameMemory : public Premises {
 protected:
  // Rank 0 combines in step i and sends the result back in step i + 1.
  void begin_allreduce(std::uint32_t window) {
    begin("complete:2", Collective::kAllreduce, false, window);
    for (NodeWriter& node : nodes) node.program.scratch_blocks = 8;
    nodes[1].send(0, 0, nodes[1].input());
    nodes[0].receive(0, 1, nodes[0].slot(0, 8));
    nodes[0].combine(0, nodes[0].output(), nodes[0].input(), nodes[0].slot(0, 8));
    nodes[0].send(1, 1, nodes[0].output(), 1);
    nodes[1].receive(1, 0, nodes[1].output());
  }
  void expect_in_place(bool in_place) const {
    expect_proven();
    EXPECT_EQ(proof().in_place, in_place);
    EXPECT_EQ(brute_force(20).in_place, in_place);
  }
};

TEST_F(SameMemory, ReceivesOverwriteNothingThatIsSent) {
  begin_allreduce(1);
  finish(1, 1);
  expect_in_place(true);
  // Rank 1 may still be sending the block in whose operand the result comes.
  begin_allreduce(4);
  finish(1, 1);
  expect_in_place(false);
}

TEST_F(SameMemory, LaterPhasesReadNoInput) {
  begin_allreduce(1);
  const std::vector<std::uint8_t> first = nodes_actions();
  nodes[1].copy(0, nodes[1].slot(0, 8), nodes[1].input());
  finish_phases({{1, 1, 0, 0, 0}, {0, 1, 0, 0, 0}}, {first, {0, 1}}, {1, 2, 0, 0, 0});
  expect_in_place(false);
}

// Rank 1 passes each block on to rank 2 one step after its arrival, and once more without waiting
// for it. On the same link the second send is behind the first; on another link it may be too
// early.
TEST_F(Stages, LinksAreToldApart) {
  for (const std::uint32_t to : {2u, 3u}) {
    begin("complete:4", Collective::kBroadcast);
    nodes[0].send(0, 1, nodes[0].input());
    nodes[0].send(1, 3, nodes[0].input());
    nodes[1].receive(0, 0, nodes[1].output());
    nodes[1].send(1, 2, nodes[1].output(), 1);
    nodes[1].send(2, to, nodes[1].output(), 0);
    nodes[2].receive(1, 1, nodes[2].output());
    nodes[3].receive(1, 0, nodes[3].output());
    nodes[to].program.scratch_blocks = 8;
    nodes[to].receive(2, 1, nodes[to].slot(0, 8));
    finish(1, 2, 2);
    to == 2 ? expect_proven() : expect_refused(Property::kHazards, 1);
  }
}

TEST_F(Stages, SlotsOfAnEarlierPhase) {
  // Phase 0 receives block i into slot i mod 4, phase 1 copies from there.
  begin_copied(4, 4);
  receive_and_copy(in_turn(0, 1, 4), in_turn(0, 1, 4));
  const Count steps{0, 1, 0, 0, 0};
  finish_phases({steps, steps}, {{1, 1}, {0, 1}}, {0, 2, 0, 0, 0});
  expect_unproven("a slot is read in a later phase", 5);
}

}  // namespace
}  // namespace espalier::verify

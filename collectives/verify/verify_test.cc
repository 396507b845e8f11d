#include "espalier/collectives/verify/verify.h"

#include "collectives/verify/testing/schedule_test.h"

namespace espalier::verify {
namespace {

class Broadcast : public ScheduleTest {
 protected:
  Broadcast() { programs = chain_broadcast(*topology); }
};

class Reduce : public ScheduleTest {
 protected:
  Reduce() { programs = chain_reduce(*topology, 4, 5); }
};

TEST_F(Broadcast, IsValid) {
  const Verdict verdict = verdict_of(*topology, programs);
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
  EXPECT_TRUE(verdict.in_place);
  EXPECT_EQ(verdict.steps_at_one, 3);
  EXPECT_TRUE(verdict.for_all) << verdict.limited;
  EXPECT_GE(verdict.proven_blocks, 4);
  EXPECT_EQ(verdict.steps_at_most, 2 + verdict.proven_blocks);
  EXPECT_EQ(verdict.busiest.load, 1u);
}

TEST_F(Broadcast, SendOrder) {
  // Rank 0 sends blocks 1, 0, 3, 2, ...: i + 1 - 2 (i mod 2).
  Program& root = programs[0];
  root.terms_count = 1;
  root.terms[0] = {-2, 1, 0, 0, 2, 0, 0, 0};
  root.indices[root.actions[0].a.block_ref] = {0, 1, 1, 0, 0, 0, 1};
  // The last block of odd N would not exist: take even N only.
  on_all([](Program& program) { program.residue_mod = 2; });
  expect_refused(Property::kMatching, {"rank 1", "N = 2", "block 0", "block 1"});
}

TEST_F(Broadcast, RefusedChanges) {
  // Steps more in the claim, and in the phase.
  const auto add_steps = [&](std::int32_t claimed, std::int32_t phase) {
    on_all([=](Program& program) {
      program.counts[program.steps_ref].a += claimed;
      program.counts[program.phases[0].steps_ref].a += phase;
    });
  };
  expect_refused_by(Property::kMatching,
                    {"rank 2 -> rank 3", "block 0 of segment 0", "step 2", "N = 1"},
                    [&] { programs[3].actions_count = programs[3].phases[0].actions = 0; });
  expect_refused_by(Property::kMatching, {"rank 2", "rank 0"}, [&] { programs[2].peers[1] = 0; });
  expect_refused_by(Property::kLinks, {"rank 2", "node 9"}, [&] { programs[2].peers[1] = 9; });
  expect_refused_by(Property::kDeadlock, {"rank 2 -> rank 3", "step 3"}, [&] {
    programs[3].counts[programs[3].actions[0].t0_ref].a += 1;
    add_steps(1, 1);
  });
  expect_refused_by(Property::kHazards, {"rank 1", "block 0", "after = 1 would"},
                    [&] { programs[1].actions[1].after = 0; });
  expect_refused_by(Property::kHazards, {"rank 1", "after = 2 does not"},
                    [&] { programs[1].actions[1].after = 2; });
  expect_refused_by(Property::kHazards, {"rank 1"}, [&] { programs[1].actions[1].after = 9; });
  expect_refused_by(Property::kSteps, {"2 steps are claimed", "3 together"},
                    [&] { add_steps(-1, 0); });
  expect_refused_by(Property::kDataFlow,
                    {"rank 3", "output block 0 of segment 0", "nothing", "rank 0"},
                    [&] { add_steps(-1, -1); });
  expect_refused_by(Property::kSteps, {"claims 4 steps", "3 are used"}, [&] { add_steps(1, 1); });
  // N + 1 is the most for four ranks: N - 1 + log2(4).
  expect_refused_by(Property::kSteps, {"lower bound of 3", "prove 2"}, [&] {
    on_all([](Program& program) { program.counts[program.bound_ref].a += 1; });
  });
  expect_refused_by(Property::kForm, {"rank 2", "root is 1"}, [&] { programs[2].root = 1; });
  expect_refused_by(Property::kDataFlow, {"rank 0", "input"},
                    [&] { on_all([](Program& program) { program.root = 1; }); });
  expect_refused_by(Property::kClaims, {"window of 65", "64"},
                    [&] { on_all([](Program& program) { program.window = 65; }); });
}

TEST_F(Broadcast, Disagreement) {
  using Change = std::function<void(Program&)>;
  const std::vector<Change> changes = {
      [](Program& p) { p.schedule_digest = 1; },
      [](Program& p) { p.topology_digest += 1; },
      [](Program& p) { p.ranks = 3; },
      [](Program& p) { p.node = 3; },
      [](Program& p) { p.window = 3; },
      [](Program& p) { p.segments = 2; },
      [](Program& p) { p.blocks[0].block_bytes = 512; },
      [](Program& p) { p.residue_mod = 2; },
      [](Program& p) { p.needs_commutative = true; },
      [](Program& p) { p.contention = ContentionGuarantee::kSlot; },
      [](Program& p) { p.port_model = PortModel::kSingleSend; },
      [](Program& p) { p.collective = Collective::kReduce; },
      [](Program& p) { p.counts[p.steps_ref].b = 2; },
      [](Program& p) { p.counts[p.bound_ref].a = 0; },
      [](Program& p) { p.format_version = 2; },
      [](Program& p) { p.peers[0] = 2; },  // itself
  };
  for (const Change& change : changes) {
    programs = chain_broadcast(*topology);
    change(programs[2]);
    expect_refused(Property::kForm, {"rank 2"});
  }
}

TEST_F(Broadcast, TwoSendsInAStep) {
  // Rank 0 sends to 1 and to 2 in the same step; 3 hangs on 2.
  programs =
      by_rank(*topology, Collective::kBroadcast, 4, {1, 1, 1, 0}, [&](auto& builder, auto me) {
        if (me == 0) builder.send(0, 1, builder.input(), 0);
        if (me == 0) builder.send(0, 2, builder.input(), 0);
        if (me == 1 || me == 2) builder.receive(0, 0, builder.output());
        if (me == 2) builder.send(1, 3, builder.output(), 1);
        if (me == 3) builder.receive(1, 2, builder.output());
      });
  expect_refused(Property::kPorts, {"rank 0", "step 0", "node 1", "node 2"});
  on_all([](Program& program) {
    program.port_model = PortModel::kMultiport;
    program.counts[program.bound_ref] = {1, 0, 0, 0, 0};
  });
  expect_valid();
  on_all([](Program& program) { program.port_model = PortModel::kSimplex; });
  expect_refused(Property::kPorts, {"rank 0"});
}

TEST_F(Broadcast, LinksOfAMesh) {
  topology = or_throw(topology::parse("mesh:4x1"));
  programs = chain_broadcast(*topology);
  expect_valid();
  // Ranks 0 and 1 both send across the middle: 0 -> 2 while 1 -> 3.
  programs =
      by_rank(*topology, Collective::kBroadcast, 4, {2, 0, 2, 1}, [&](auto& builder, auto me) {
        builder.program.contention = ContentionGuarantee::kSlot;
        if (me == 0) builder.send(0, 1, builder.input(), 0);
        if (me == 0) builder.send(1, 2, builder.input(), 0);
        if (me == 1) builder.receive(0, 0, builder.output());
        if (me == 1) builder.send(1, 3, builder.output(), 1);
        if (me == 2) builder.receive(1, 0, builder.output());
        if (me == 3) builder.receive(1, 1, builder.output());
      });
  expect_refused(Property::kLinks, {"row 1", "row 2", "carries 2", "capacity is 1"});
  VerifyOptions without{.links = false};
  EXPECT_TRUE(verdict_of(*topology, programs, without).valid);
}

// Ranks 0 and 1 send across the middle in different steps, which timing skew may bring together.
TEST_F(Broadcast, LinksOfAMeshInLockStepOnly) {
  topology = or_throw(topology::parse("mesh:4x1"));
  programs =
      by_rank(*topology, Collective::kBroadcast, 4, {3, 0, 3, 1}, [&](auto& builder, auto me) {
        if (me == 0) builder.send(0, 1, builder.input(), 0);
        if (me == 0) builder.send(1, 2, builder.input(), 0);
        if (me == 1) builder.receive(0, 0, builder.output());
        if (me == 1) builder.send(2, 3, builder.output(), 2);
        if (me == 2) builder.receive(1, 0, builder.output());
        if (me == 3) builder.receive(2, 1, builder.output());
      });
  expect_refused(Property::kLinks,
                 {"carries 2 at the same time under timing skew",
                  "capacity is 1; contention guarantee ASYNC is claimed, and only SLOT holds"});
  on_all([](Program& program) { program.contention = ContentionGuarantee::kSlot; });
  expect_valid();
}

TEST_F(Reduce, IsValid) {
  const Verdict verdict = verdict_of(*topology, programs);
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
  EXPECT_TRUE(verdict.in_place);
}

TEST_F(Reduce, RefusedChanges) {
  expect_refused_by(Property::kHazards,
                    {"rank ", "scratch slot 0", "overwritten", "still be sending"},
                    [&] { programs = chain_reduce(*topology, 4, 4); });
  expect_refused_by(Property::kHazards, {"window 5"},
                    [&] { on_all([](Program& program) { program.window = 5; }); });
  expect_refused_by(Property::kClaims, {"rank 2", "slot 4", "4 blocks"},
                    [&] { programs[2].scratch_blocks = 4; });
  expect_refused_by(Property::kHazards, {"rank 1", "scratch slot 0", "after = 0 would"},
                    [&] { programs[1].actions[1].after = 1; });
  // Rank 1 sends from the slot after the one it combined into.
  expect_refused_by(
      Property::kHazards, {"rank 1", "scratch slot 5", "nothing has been written"}, [&] {
        Program& program = programs[1];
        program.scratch_blocks = 6;
        program.indices[program.indices_count] = {5, 0, 0, 0, 0, 0, 0};
        program.actions[2].a.slot_ref = static_cast<std::uint8_t>(program.indices_count++);
      });
}

TEST_F(Reduce, OperandsInTheWrongOrder) {
  std::swap(programs[1].actions[1].a, programs[1].actions[1].b);
  expect_refused(Property::kDataFlow, {"rank 1", "ranks 2-3 (left)", "rank 1 (right)"});
  on_all([](Program& program) { program.needs_commutative = true; });
  expect_valid();
}

TEST_F(Reduce, CountedTwice) {
  // Rank 2 sends rank 3's data on and adds its own twice.
  programs = by_rank(*topology, Collective::kReduce, 4, {1, 2, 1, 1}, [&](auto& builder, auto me) {
    builder.program.needs_commutative = true;
    builder.program.scratch_blocks = 8;
    const auto step = 2 - static_cast<std::int32_t>(me);
    const Operand slot = builder.slot(0, 8);
    const Operand sum = me == 0 ? builder.output() : slot;
    if (me < 3) builder.receive(step, me + 1, slot);
    if (me < 3) builder.combine(step, sum, builder.input(), slot);
    if (me == 2) builder.combine(step, sum, slot, builder.input());
    if (me > 0) builder.send(step + 1, me - 1, me == 3 ? builder.input() : slot, me < 3 ? 1 : 0);
  });
  expect_refused(Property::kDataFlow, {"rank 2", "ranks 2-3 (left)", "no rank may count twice"});
}

TEST_F(Reduce, RankMissing) {
  // Rank 1 passes on the data of rank 2 without its own.
  programs[1].actions[1].kind = ActionKind::kCopy;
  programs[1].actions[1].a = programs[1].actions[1].b;
  programs[1].actions[1].has_b = false;
  expect_refused(Property::kDataFlow, {"rank 0", "ranks 2-3 (right)"});
  on_all([](Program& program) { program.needs_commutative = true; });
  expect_refused(Property::kDataFlow,
                 {"rank 0", "ends with the data of ranks 0, 2-3", "ranks 0-3"});
}

TEST_F(Reduce, SlotHoldsAnotherBlock) {
  // Rank 1 sends block i from the slot of block i - 1.
  Program& program = programs[1];
  program.indices[program.indices_count] = program.indices[program.actions[2].a.slot_ref];
  program.indices[program.indices_count].off = 4;
  program.actions[2].a.slot_ref = static_cast<std::uint8_t>(program.indices_count++);
  const Verdict verdict = verdict_of(*topology, programs);
  ASSERT_FALSE(verdict.valid);
  EXPECT_EQ(verdict.counterexample.node, 1);
}

}  // namespace
}  // namespace espalier::verify

// Hazards in detail: the events that rules 4, 5 and the window order, and the events that they do
// not.

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "collectives/verify/testing/program_builder.h"

namespace espalier::verify {
namespace {

// Two ranks; rank 1 relays through scratch to itself in ways that differ by test. Rank 0 sends its
// input in step i and the result comes to rank 1's output.
class Relay : public ::testing::Test {
 protected:
  std::vector<OwnedProgram> with(std::int32_t steps,
                                 const std::function<void(ProgramBuilder&)>& rank_1) {
    ProgramBuilder root(*topology, Collective::kBroadcast, 0, 4);
    root.send(0, 1, root.input(), 0);
    ProgramBuilder other(*topology, Collective::kBroadcast, 1, 4);
    rank_1(other);
    return {root.finish(1, steps - 1, 1, 0), other.finish(1, steps - 1, 1, 0)};
  }
  Verdict verdict(std::int32_t steps, const std::function<void(ProgramBuilder&)>& rank_1) {
    return verdict_of(*topology, with(steps, rank_1));
  }
  std::unique_ptr<topology::Topology> topology = or_throw(topology::parse("complete:2"));
};

void copy_out(ProgramBuilder& builder, std::int32_t t0, std::uint32_t slots, std::uint16_t after) {
  builder.program.scratch_blocks = slots;
  builder.receive(0, 0, builder.slot(0, slots));
  builder.copy(t0, builder.output(), builder.slot(0, slots)).after = after;
}

TEST_F(Relay, CopyInTheReceivesStepNeedsWSlots) {
  // Receive of step t needs step t - 4 retired; the copy of step s belongs to it.
  EXPECT_TRUE(verdict(1, [](ProgramBuilder& builder) { copy_out(builder, 0, 4, 0); }).valid);
  EXPECT_FALSE(verdict(1, [](ProgramBuilder& builder) { copy_out(builder, 0, 3, 0); }).valid);
}

TEST_F(Relay, LaterCopyNeedsMoreSlots) {
  EXPECT_TRUE(verdict(3, [](ProgramBuilder& builder) { copy_out(builder, 2, 6, 2); }).valid);
  EXPECT_FALSE(verdict(3, [](ProgramBuilder& builder) { copy_out(builder, 2, 5, 2); }).valid);
}

// Rank 1 hears of blocks 2r and 2r + 1 in steps 5r and 5r + 2, and copies each a step later.
class Paced : public ::testing::Test {
 protected:
  static constexpr std::uint8_t kEntries[] = {0, 0, 2, 0, 1, 0, 3, 0};
  // 5 * floor(i / 2) + an entry of the table that starts at `first`.
  static std::uint8_t pace(ProgramBuilder& builder, std::uint32_t first) {
    Program& program = builder.program;
    program.table = {kEntries, sizeof kEntries};
    const std::uint32_t term = program.terms_count;
    program.terms[term] = {5, 1, 0, 2, 0, 0, 0, 0};
    program.terms[term + 1] = {1, 1, 0, 0, 2, 0, 0, first + 1};
    program.terms_count += 2;
    if (program.indices_count == 0) builder.index(0, 0);  // row 0 means "no pace"
    const std::uint8_t ref = builder.index(0, 0);
    program.indices[ref].first_term = static_cast<std::uint8_t>(term);
    program.indices[ref].terms = 2;
    return ref;
  }
  // N is even.
  static OwnedProgram finish(ProgramBuilder& builder) {
    Program& program = builder.program;
    program.residue_mod = 2;
    builder.finish(1, 0, 0, 0);
    program.counts[program.steps_ref] = {-1, 0, 5, 0, 2};
    program.counts[program.phases[0].steps_ref] = {-1, 0, 5, 0, 2};
    program.counts[program.bound_ref] = {1, 0, 0, 0, 0};
    return program;
  }
  Verdict verdict(const std::function<void(ProgramBuilder&, Action&)>& change) {
    ProgramBuilder root(*topology, Collective::kBroadcast, 0, 4);
    root.send(0, 1, root.input(), 0).pace_ref = pace(root, 0);
    ProgramBuilder other(*topology, Collective::kBroadcast, 1, 4);
    other.program.scratch_blocks = 2;
    other.receive(0, 0, other.slot(0, 2)).pace_ref = pace(other, 0);
    Action& copy = other.copy(0, other.output(), other.slot(0, 2));
    copy.after = 1;
    copy.pace_ref = pace(other, 2);
    change(other, copy);
    return verdict_of(*topology, {finish(root), finish(other)});
  }
  std::unique_ptr<topology::Topology> topology = or_throw(topology::parse("complete:2"));
};

TEST_F(Paced, CopiesByATable) {
  const Verdict proven = verdict([](ProgramBuilder&, Action&) {});
  EXPECT_TRUE(proven.valid) << proven.counterexample.message;
}

TEST_F(Paced, CopiesInOrder) {
  const auto expect = [&](Property property, const std::string& words,
                          const std::function<void(ProgramBuilder&, Action&)>& change) {
    const Verdict refused = verdict(change);
    ASSERT_FALSE(refused.valid) << words;
    EXPECT_EQ(refused.counterexample.property, property) << refused.counterexample.message;
    EXPECT_NE(refused.counterexample.message.find(words), std::string::npos)
        << refused.counterexample.message;
  };
  expect(Property::kForm, "the pace of action 1 gives instance 2 step 2 of phase 0; it must be 3",
         [](ProgramBuilder& builder, Action&) { builder.program.terms[2].coef = 1; });
  expect(Property::kForm, "it must be 3 or later, and the phase has 4",
         [](ProgramBuilder& builder, Action& copy) { copy.instances_ref = builder.count(1, 1); });
  expect(Property::kForm, "not one a node would load",
         [](ProgramBuilder& builder, Action& copy) { copy.pace_ref = builder.index(0, -1); });
  expect(Property::kHazards, "is read before it must be written",
         [](ProgramBuilder&, Action& copy) { copy.after = 2; });
}

TEST_F(Relay, AfterZeroWaitsForItsOwnStepOnly) {
  EXPECT_FALSE(verdict(3, [](ProgramBuilder& builder) { copy_out(builder, 2, 6, 0); }).valid);
}

TEST_F(Relay, OperationOrderCarriesOverEarlierReceives) {
  // The copy of step i + 2 waits for the receive of step i + 1; the copy before it has waited for
  // that of step i. Only the first copy has none before it.
  const Verdict refused = verdict(3, [](ProgramBuilder& builder) { copy_out(builder, 2, 6, 1); });
  EXPECT_FALSE(refused.valid);
  EXPECT_EQ(refused.counterexample.property, Property::kHazards);
  EXPECT_EQ(refused.counterexample.block, 0);
}

TEST_F(Relay, BeyondTheWindowEverythingHasRetired) {
  EXPECT_TRUE(verdict(5, [](ProgramBuilder& builder) { copy_out(builder, 4, 8, 1); }).valid);
}

// Allreduce of two ranks by exchange: each sends its input and combines the received block.
class Exchange : public ::testing::Test {
 protected:
  std::vector<OwnedProgram> programs(std::int32_t combine_step) {
    return by_rank(*topology, Collective::kAllreduce, 4, {1, combine_step, 1, 0},
                   [&](auto& builder, auto me) {
                     builder.program.scratch_blocks = 8;
                     const Operand slot = builder.slot(0, 8);
                     const Operand own = builder.input();
                     builder.send(0, 1 - me, own, 0);
                     const std::uint8_t link = builder.program.actions[0].link_ref;
                     Action& receive = builder.act(ActionKind::kReceive, 0);
                     receive.link_ref = link;
                     receive.has_into = true;
                     receive.into = slot;
                     builder.combine(combine_step, builder.output(), me == 0 ? own : slot,
                                     me == 0 ? slot : own);
                   });
  }
  std::unique_ptr<topology::Topology> topology = or_throw(topology::parse("complete:2"));
};

TEST_F(Exchange, InPlaceByRule5d) {
  // The combine writes the output where the send still reads the input: it waits for that.
  const Verdict verdict = verdict_of(*topology, programs(0));
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
  EXPECT_TRUE(verdict.in_place);
}

// All of `programs` a step later, and in step `step` a copy of the input into the output.
void add_copy(std::vector<OwnedProgram>& programs, std::int32_t step) {
  for (Program& program : programs) {
    const std::int32_t others = 1 - step;
    for (std::uint32_t i = 0; i < 3; ++i) {
      program.counts[program.actions[i].t0_ref].a = others;
    }
    Action& copy = program.actions[program.actions_count++];
    copy.kind = ActionKind::kCopy;
    program.counts[program.counts_count] = {step, 0, 0, 0, 0};
    copy.t0_ref = static_cast<std::uint8_t>(program.counts_count++);
    copy.instances_ref = program.actions[0].instances_ref;
    copy.has_into = copy.has_a = true;
    copy.into = program.actions[2].into;
    copy.a = program.actions[0].a;
    program.phases[0].actions = 4;
    program.counts[program.phases[0].steps_ref].a = 1;
    program.counts[program.steps_ref].a = 1;
  }
}

TEST_F(Exchange, ABlockMayBeCopiedOntoItself) {
  std::vector<OwnedProgram> all = programs(0);
  add_copy(all, 0);
  const Verdict verdict = verdict_of(*topology, all);
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
  EXPECT_TRUE(verdict.in_place);
}

TEST_F(Exchange, NotInPlaceWhereInputIsReadAfterwards) {
  std::vector<OwnedProgram> all = programs(0);
  add_copy(all, 1);
  for (Program& program : all) {
    // Into a slot, after the output has been written.
    program.scratch_blocks = 16;
    Operand& into = program.actions[3].into;
    into.buffer = Buffer::kScratch;
    program.indices[program.indices_count] = {8, 1, 0, 0, 8, 0, 0};
    into.slot_ref = static_cast<std::uint8_t>(program.indices_count++);
  }
  const Verdict verdict = verdict_of(*topology, all);
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
  EXPECT_FALSE(verdict.in_place);
}

// A send that waits for one of two receives knows nothing of the other.
TEST(Dependency, OneStepIsNotTheOther) {
  const auto topology = or_throw(topology::parse("complete:4"));
  // 0 -> 2 -> 3 with 2 receiving from 1 in between: reduce to 3 of {0, 1, 2, 3}.
  for (const bool waits_for_both : {false, true}) {
    const std::vector<OwnedProgram> programs =
        by_rank(*topology, Collective::kReduce, 4, {4, 0, 4, 0}, [&](auto& builder, auto me) {
          builder.program.root = 3;
          builder.program.needs_commutative = true;
          builder.program.scratch_blocks = 24;
          if (me == 0) builder.send(0, 2, builder.input(), 0);
          if (me == 1) builder.send(1, 2, builder.input(), 0);
          if (me == 2) {
            builder.receive(0, 0, builder.slot(0, 8));
            builder.receive(1, 1, builder.slot(8, 8));
            // The sum is of step 2; its combines wait for one receive, or for both.
            builder.combine(2, builder.slot(16, 8), builder.slot(0, 8), builder.input()).after =
                waits_for_both ? 2 : 1;
            builder.combine(2, builder.slot(16, 8), builder.slot(16, 8), builder.slot(8, 8)).after =
                1;
            builder.send(3, 3, builder.slot(16, 8), 1);
          }
          if (me == 3) {
            builder.receive(3, 2, builder.slot(0, 8));
            builder.combine(3, builder.output(), builder.slot(0, 8), builder.input());
          }
        });
    const Verdict verdict = verdict_of(*topology, programs);
    EXPECT_EQ(verdict.valid, waits_for_both) << verdict.counterexample.message;
  }
}

}  // namespace
}  // namespace espalier::verify

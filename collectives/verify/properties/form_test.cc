// Conditions that are checked first: each program is that of its node, all belong to one schedule,
// and the size is within the limits.

#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/counterexample.h"
#include "collectives/verify/properties/data_flow.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/rank_sets.h"
#include "collectives/verify/testing/schedule_test.h"

namespace espalier::verify {
namespace {

class Form : public ScheduleTest {
 protected:
  Form() { programs = chain_broadcast(*topology); }
};

TEST_F(Form, RefusedChanges) {
  const auto loads_nowhere = "not one a node would load";
  // A changing index of rank 2, which the loader cannot judge.
  const auto changing = [&](std::int32_t base) {
    programs[2].indices[programs[2].indices_count] = {base, 1, 0, 0, 0, 0, 0};
    return static_cast<std::uint8_t>(programs[2].indices_count++);
  };
  expect_refused_by(Property::kForm, {"the program says that it is node 3's; it must be 2's"}, [&] {
    programs[2].node = 3, programs[2].peers[0] = 0, programs[2].peers[1] = 1;
  });
  expect_refused_by(Property::kForm, {"made for a topology other than complete:4"},
                    [&] { programs[1].topology_digest ^= 1; });
  expect_refused_by(Property::kForm, {"the program is for 5 ranks; complete:4 has 4"},
                    [&] { on_all([](Program& p) { p.ranks = 5; }); });
  expect_refused_by(Property::kClaims, {"a window of 65 is claimed"},
                    [&] { on_all([](Program& p) { p.window = kMaxVerifiedWindow + 1; }); });
  expect_refused_by(Property::kForm, {loads_nowhere}, [&] { programs[3].segments = 0; });
  // Beyond the table, too: under a sanitizer nothing reads there.
  expect_refused_by(Property::kForm, {loads_nowhere},
                    [&] { on_all([](Program& p) { p.phases[0].steps_ref = 255; }); });
  expect_refused_by(Property::kForm, {"segment 1 does not exist; there are 1"},
                    [&] { programs[2].actions[0].into.segment_ref = changing(1); });
  expect_refused_by(Property::kForm, {"link 5 is not in the table of 2 peers"},
                    [&] { programs[2].actions[0].link_ref = changing(5); });
  expect_refused_by(Property::kClaims,
                    {"scratch slot 1 is used, but the program claims only 1 block of scratch"},
                    [&] {
                      programs[2].scratch_blocks = 1;
                      programs[2].actions[0].into.buffer = Buffer::kScratch;
                      programs[2].actions[0].into.slot_ref = changing(1);
                    });
  expect_refused_by(Property::kDataFlow, {"the input of rank 1 is used, but"},
                    [&] { programs[1].actions[1].a.buffer = Buffer::kInput; });
  expect_refused_by(Property::kDataFlow, {"the output of rank 0 is used, but"},
                    [&] { programs[0].actions[0].a.buffer = Buffer::kOutput; });
  expect_refused_by(Property::kDataFlow, {"the output of rank 1 is used, but"}, [&] {
    programs = chain_reduce(*topology, 4, 5);
    programs[1].actions[1].into.buffer = Buffer::kOutput;
  });
}

TEST_F(Form, HeadersThatDiffer) {
  const auto differs = [&](const std::string& what, const std::function<void(Program&)>& change) {
    expect_refused_by(Property::kForm, {what}, [&] { change(programs[2]); });
  };
  differs("digest is 1, but 0", [](Program& p) { p.schedule_digest = 1; });
  differs("collective", [](Program& p) { p.collective = Collective::kReduce; });
  differs("required_features is 1, but 0", [](Program& p) {
    p.blocks[0].block_bytes = 0;
    p.segments = 4;
    p.required_features = kRotatedScratch;
  });
  differs("root is 1", [](Program& p) { p.root = 1; });
  differs("needs_commutative", [](Program& p) { p.needs_commutative = true; });
  differs("window is 5", [](Program& p) { p.window = 5; });
  differs("port_model", [](Program& p) { p.port_model = PortModel::kMultiport; });
  differs("contention guarantee", [](Program& p) { p.contention = ContentionGuarantee::kSlot; });
  differs("segments is 2", [](Program& p) { p.segments = 2; });
  differs("residue_mod is 1", [](Program& p) { p.residue_mod = 1; });
  differs("length of the block table", [](Program& p) { p.blocks[p.blocks_count++] = {9, 9}; });
  differs("rule 0 of the block table", [](Program& p) { p.blocks[0].block_bytes = 9; });
  differs("the claimed steps", [](Program& p) { ++p.counts[p.steps_ref].a; });
  differs("the claimed lower bound", [](Program& p) { ++p.counts[p.bound_ref].a; });
  differs("the steps of phase 0", [](Program& p) { ++p.counts[p.phases[0].steps_ref].a; });
  differs("phases is 2", [](Program& p) { p.phases[p.phases_count++] = {1, p.steps_ref, 0}; });
  for (Program& program : programs) program.residue_mod = 2;
  differs("residue is 1", [](Program& p) { p.residue = 1; });
}

// For N blocks the chain of 4 takes 6 N instances and 4 N places.
TEST_F(Form, MoreThanCanBeCheckedForOneN) {
  VerifyOptions options{.links = false, .max_blocks = 6, .max_instances = 60};
  EXPECT_TRUE(verdict_of(*topology, programs, options).valid);
  options.max_blocks = 7;
  expect_refused(Property::kForm,
                 {"more than can be checked; 60 are for one N; of this N and rank the most are 7 "
                  "instances of action 0"},
                 options);
  EXPECT_TRUE(verdict_of(*topology, programs, options).counterexample.too_large);
}

// A schedule of few nodes may take less work than one of many, unless certain N are asked for.
TEST_F(Form, TheWorkGrowsWithTheNodes) {
  VerifyOptions options;
  EXPECT_EQ(max_total(options, 4), (1 << 23) + 4 * (1 << 14));
  EXPECT_EQ(max_total(options, 4, kTimesAtOnce), (1 << 25) + 4 * (1 << 16));
  EXPECT_EQ(max_total(options, 1 << 20), options.max_instances_total);
  options.max_blocks = 1000;
  EXPECT_EQ(max_total(options, 4), options.max_instances_total);
  options = {};
  options.max_instances_total = 100;
  EXPECT_EQ(max_total(options, 4), 100);
}

// form_error() finds without a proof what would lead a reader of the programs astray.
TEST_F(Form, ErrorsWithoutAProof) {
  const Programs source = [this](std::uint32_t node) -> const Program& { return programs[node]; };
  EXPECT_EQ(form_error(*topology, source), "");
  EXPECT_EQ(form_error(*topology, source, 3), "");
  const auto expect_error = [&](std::int64_t blocks, const std::string& words) {
    const std::string line =
        blocks == 0 ? form_error(*topology, source) : form_error(*topology, source, blocks);
    EXPECT_NE(line.find(words), std::string::npos) << line;
    programs = chain_broadcast(*topology);
  };
  programs[0].peers[0] = 7;
  expect_error(0, "complete:4 has no such link (peer 0 of the program)");
  programs[1].root = 2;
  expect_error(0, "root is 2, but 0 in rank 0's program");
  programs[0].indices[programs[0].actions[0].a.segment_ref].coef = 5;
  expect_error(3, "segment 5 does not exist; there are 1");
  for (Program& program : programs) program.counts[program.phases[0].steps_ref].a = 1 << 30;
  expect_error(3, "; of this N and rank the most are the steps: one for each 32");
}

// Each N is small enough, but they are many.
TEST_F(Form, MoreThanCanBeCheckedTogether) {
  VerifyOptions options{.links = false, .max_blocks = 100};
  options.max_instances_total = 50500 + 1600;  // 5 N (N + 1), and steps below 4 * 32
  EXPECT_TRUE(verdict_of(*topology, programs, options).valid);
  options.max_instances_total = 12750;
  const std::string words = "more than can be checked; 12750 are for all N together";
  expect_refused(Property::kForm, {words}, options);
  const Verdict verdict = verdict_of(*topology, programs, options);
  EXPECT_TRUE(verdict.counterexample.too_large);
  EXPECT_NEAR(static_cast<double>(verdict.counterexample.blocks), 50, 2);
  options.max_blocks = 0;  // the proof for every N at once
  EXPECT_TRUE(verdict_of(*topology, programs, options).valid);
  options.max_instances_total = 12;
  expect_refused(Property::kForm, {"12 are for all N together"}, options);
}

// Nor are steps without end in which nothing happens.
TEST_F(Form, IdleSteps) {
  for (Program& program : programs) program.counts[program.phases[0].steps_ref].a = 1 << 30;
  VerifyOptions options{.max_blocks = 1, .max_instances_total = 1 << 20};
  expect_refused(Property::kForm, {"instances, places and steps"}, options);
  // An error that the proof for every N finds is reported even if checking each N would be too
  // large.
  options.max_blocks = 0;
  expect_refused(Property::kSteps, {"the claim must be exact"}, options);
  EXPECT_FALSE(verdict_of(*topology, programs, options).counterexample.too_large);
}

TEST_F(Form, RoutesTooLong) {
  topology = or_throw(topology::parse("mesh:1x64"));
  programs = chain_broadcast(*topology);
  VerifyOptions options{.max_blocks = 1};
  options.max_instances_total = 126 + 64 + 128;  // 63 steps of 64 ranks: twice 32
  expect_refused(Property::kLinks, {"more hops than the 0 that can be checked"}, options);
  EXPECT_TRUE(verdict_of(*topology, programs, options).counterexample.too_large);
  options.max_instances_total += 32;  // in lock step, and under timing skew
  EXPECT_TRUE(verdict_of(*topology, programs, options).valid);
}

// Every second rank of many: sets with a gap at each.
TEST_F(Form, SetsOfTooManyGaps) {
  ExpandedSchedule schedule{.max_instances = 100};
  RankSets sets;
  RankSet every_second = sets.range(0, 0);
  std::uint32_t rank = 0;
  for (; rank <= 28; rank += 2) {
    EXPECT_FALSE(check_sets(schedule, sets)) << rank;
    every_second = sets.combine(every_second, sets.range(rank + 2, rank + 2), Join::kDisjoint);
  }
  const Finding finding = check_sets(schedule, sets);
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->too_large);
  EXPECT_NE(finding->message.find("more than 100 gaps"), std::string::npos) << finding->message;
}

TEST_F(Form, ProvenAtOnceOrNotAtAll) {
  VerifyOptions options{.method = Method::kPeriodic};
  const Verdict verdict = verdict_of(*topology, programs, options);
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
  EXPECT_TRUE(verdict.for_all);
  // Too many segments for the proof, though nothing is wrong with them.
  for (Program& program : programs) program.segments = (1 << 20) + 1;
  const Verdict none = verdict_of(*topology, programs, options);
  EXPECT_FALSE(none.valid);
  EXPECT_NE(none.counterexample.message.find("too many segments"), std::string::npos)
      << none.counterexample.message;
}

// Bruck's allgather among 4 ranks, written by hand: rank r has segments r, r + 1, ... in its area.
// Actions: 0 the copy of the own segment, 1 and 2 the first exchange, 3 and 4 that of two segments.
class RotatedForm : public Form {
 protected:
  static Operand run_of(ProgramBuilder& builder, Buffer buffer, std::uint32_t segment,
                        std::uint32_t segment_count, std::uint32_t slot = 0) {
    Operand operand = builder.operand(buffer, static_cast<std::int32_t>(segment % 4));
    operand.slot_ref = builder.index(static_cast<std::int32_t>(slot), 0);
    operand.segment_count = static_cast<std::uint16_t>(segment_count);
    return operand;
  }

  void SetUp() override {
    programs =
        by_rank(*topology, Collective::kAllgather, 4, {1, 1, 1, 1}, [&](auto& builder, auto me) {
          builder.program.blocks[0] = {0, 0};
          builder.program.segments = 4;
          builder.program.required_features = kRotatedScratch;
          builder.program.scratch_blocks = 8;
          builder.copy(0, run_of(builder, kScratch, me, 1), run_of(builder, kInput, me, 1));
          builder.send(0, (me + 3) % 4, run_of(builder, kInput, me, 1));
          builder.receive(0, (me + 1) % 4, run_of(builder, kScratch, me + 1, 1, 1));
          builder.send(1, (me + 2) % 4, run_of(builder, kScratch, me, 2), 1);
          builder.receive(1, (me + 2) % 4, run_of(builder, kScratch, me + 2, 2, 2));
          for (std::uint32_t position = 0; position < 4; ++position) {
            builder.copy(1, run_of(builder, kOutput, me + position, 1),
                         run_of(builder, kScratch, me + position, 1, position));
          }
        });
  }
  // Sets the segment (or slot) of an operand.
  void set_segment(std::uint32_t node, Operand Action::*operand, std::uint32_t action,
                   std::int32_t segment) {
    Program& program = programs[node];
    program.indices[(program.actions[action].*operand).segment_ref].base = segment;
  }
  void set_slot(std::uint32_t node, Operand Action::*operand, std::uint32_t action,
                std::int32_t slot) {
    Program& program = programs[node];
    program.indices[(program.actions[action].*operand).slot_ref].base = slot;
  }
};

TEST_F(RotatedForm, ARunGoesOnAfterTheLastSegment) {
  const Verdict verdict = verdict_of(*topology, programs);
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
  for (Program& program : programs) program.required_features = 0;
  expect_refused(Property::kForm, {"not one a node would load"});
}

TEST_F(RotatedForm, RefusedChanges) {
  expect_refused_by(Property::kForm, {"segment 4 does not exist; there are 4"}, [&] {
    programs[3].indices[programs[3].actions[4].into.segment_ref].mod = 9;
    programs[3].indices[programs[3].actions[4].into.segment_ref].coef = 1;
    set_segment(3, &Action::into, 4, 4);
  });
  // The area begins with the own segment, so a run ends before it.
  expect_refused_by(
      Property::kForm,
      {"block 0 of segments 0-1 pass the node's own segment, 1, with which each area"},
      [&] { set_segment(1, &Action::into, 4, 0); });
  expect_refused_by(Property::kForm, {"block 0 of segments 1-3 pass the node's own segment, 2"},
                    [&] {
                      programs[2].actions[4].into.segment_count = 3;
                      set_segment(2, &Action::into, 4, 1);
                    });
  expect_refused_by(Property::kForm,
                    {"block 0 of segments 2-3 and segments 0-1 pass the node's own"}, [&] {
                      programs[0].actions[3].a.segment_count = 4;
                      set_segment(0, &Action::a, 3, 2);
                    });
  expect_refused_by(Property::kForm, {"scratch slots 1-2 is too low for block 0 of segments 0-1"},
                    [&] { set_slot(2, &Action::into, 4, 1); });
  // The slots of both would be the same memory only if all segments had the same length.
  expect_refused_by(
      Property::kForm,
      {"scratch slot 2 is in the area from slot 0, but in the one from slot 1 elsewhere"},
      [&] { set_slot(1, &Action::into, 2, 2); });
  // No slot is in two areas, but slot 6 of the area from slot 3 is above slot 4 of another one:
  // if the segments before it are short, they share memory.
  expect_refused_by(
      Property::kForm,
      {"scratch slot 5 is in the area from slot 3, and scratch slot 4 is in the area from slot 4: "
       "areas may not overlap"},
      [&] {
        set_slot(0, &Action::into, 0, 4);
        set_slot(0, &Action::into, 4, 5);
        set_slot(0, &Action::a, 3, 4);
        programs[0].actions[3].a.segment_count = 1;
        set_slot(0, &Action::a, 5, 4);
        set_slot(0, &Action::a, 7, 5);
        set_slot(0, &Action::a, 8, 6);
      });
}

}  // namespace
}  // namespace espalier::verify

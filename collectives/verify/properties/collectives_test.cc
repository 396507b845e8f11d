// Small schedules of every collective, written by hand. Correct ones pass. Ones with an error that
// only this collective can have are refused.

#include "collectives/verify/testing/schedule_test.h"

namespace espalier::verify {
namespace {

constexpr Buffer kScratch = Buffer::kScratch;

class Collectives : public ScheduleTest {
 protected:
  // Gives the program one block per segment, and `slots` slots.
  void whole(ProgramBuilder& builder, std::uint32_t slots) const {
    builder.program.blocks[0] = {0, 0};
    builder.program.scratch_blocks = slots;
    if (counts_per_rank(builder.program.collective)) builder.program.segments = topology->ranks();
  }
  // `segment_count` segments, the first of them `segment`; in scratch the first slot is `slot`.
  static Operand run_of(ProgramBuilder& builder, Buffer buffer, std::uint32_t segment,
                        std::uint32_t segment_count, std::uint32_t slot = 0) {
    Operand operand = builder.operand(buffer, static_cast<std::int32_t>(segment));
    operand.slot_ref = builder.index(static_cast<std::int32_t>(slot), 0);
    operand.segment_count = static_cast<std::uint16_t>(segment_count);
    return operand;
  }
  static Operand operand(ProgramBuilder& builder, Buffer buffer, std::uint32_t segment,
                         std::uint32_t slot = 0) {
    return run_of(builder, buffer, segment, 1, slot);
  }
};

// Rank r passes on the combination of ranks 0 .. r.
std::vector<OwnedProgram> chain_scan(const topology::Topology& topology, bool inclusive) {
  const std::uint32_t p = topology.ranks();
  return by_rank(topology, inclusive ? Collective::kScan : Collective::kExscan, 4,
                 {1, static_cast<std::int32_t>(p) - 2, 1, 1}, [&](auto& builder, auto me) {
                   builder.program.scratch_blocks = 9;
                   const auto step = static_cast<std::int32_t>(me);
                   const Operand before = inclusive ? builder.slot(0, 9) : builder.output();
                   const Operand sum = me == 0     ? builder.input()
                                       : inclusive ? builder.output()
                                                   : builder.slot(0, 9);
                   if (me > 0) {
                     builder.receive(step - 1, me - 1, before);
                     builder.combine(step - 1, sum, before, builder.input());
                   } else if (inclusive) {
                     builder.copy(0, builder.output(), builder.input());
                   }
                   if (me + 1 < p) builder.send(step, me + 1, sum, me == 0 ? 0 : 1);
                 });
}

TEST_F(Collectives, Scan) {
  programs = chain_scan(*topology, true);
  expect_valid();
  // The last rank's own first.
  std::swap(programs[3].actions[1].a, programs[3].actions[1].b);
  expect_refused(Property::kDataFlow, {"the left must end just before the right begins"});
  programs = chain_scan(*topology, true);
  programs[0].actions_count = 1;
  programs[0].phases[0].actions = 1;
  programs[0].actions[0] = programs[0].actions[1];
  expect_refused(Property::kDataFlow, {"ends with the data of nothing; it must be that of rank 0"});
}

TEST_F(Collectives, Exscan) {
  programs = chain_scan(*topology, false);
  expect_valid();
  for (Program& program : programs) program.collective = Collective::kScan;
  expect_refused(Property::kDataFlow, {"rank 0"});
}

// Ranks 0 -> 2 (segments 2 and 3 in one message), then 0 -> 1 and 2 -> 3.
TEST_F(Collectives, ScatterByRuns) {
  programs = by_rank(*topology, Collective::kScatter, 8, {1, 2, 0, 1}, [&](auto& builder, auto me) {
    whole(builder, me == 2 ? 2 : 0);
    if (me == 0) {
      builder.send(0, 2, run_of(builder, kInput, 2, 2), 0);
      builder.send(1, 1, operand(builder, kInput, 1), 0);
      builder.copy(0, operand(builder, kOutput, 0), operand(builder, kInput, 0));
    }
    if (me == 1 || me == 3) builder.receive(1, me - 1, operand(builder, kOutput, me));
    if (me == 2) {
      builder.receive(0, 0, run_of(builder, kScratch, 2, 2));
      builder.copy(0, operand(builder, kOutput, 2), operand(builder, kScratch, 2, 0));
      builder.send(1, 3, operand(builder, kScratch, 3, 1), 1);
    }
  });
  expect_valid();
  const std::vector<OwnedProgram> valid = programs;
  programs[2].actions[2].after = 0;
  expect_refused(Property::kHazards, {"scratch slot 1 is read before it must be written"});
  programs = valid;
  programs[0].actions[0].a.segment_count = 1;
  expect_refused(Property::kMatching, {"awaited, but the other end sends block 0 of segment 2 "});
  programs = valid;
  programs[2].actions[1].a.slot_ref = programs[2].actions[2].a.slot_ref;
  expect_refused(Property::kDataFlow, {"scratch slot 1 holds block 0 of segment 3"});
  programs = valid;
  programs[3].actions[0].into.segment_ref = 0;
  programs[3].indices[0].base = 2;
  expect_refused(Property::kDataFlow, {"holds the node's own segment only, 3"});
}

// Ranks 1 -> 0 and 3 -> 2, then 2 -> 0 (segments 2 and 3).
TEST_F(Collectives, GatherByRuns) {
  programs = by_rank(*topology, Collective::kGather, 8, {1, 2, 0, 1}, [&](auto& builder, auto me) {
    whole(builder, me == 2 ? 2 : 0);
    if (me == 0) {
      builder.receive(0, 1, operand(builder, kOutput, 1));
      builder.receive(1, 2, run_of(builder, kOutput, 2, 2));
      builder.copy(0, operand(builder, kOutput, 0), operand(builder, kInput, 0));
    }
    if (me % 2 == 1) builder.send(0, me - 1, operand(builder, kInput, me), 0);
    if (me == 2) {
      builder.receive(0, 3, operand(builder, kScratch, 3, 1));
      builder.copy(0, operand(builder, kScratch, 2, 0), operand(builder, kInput, 2));
      builder.send(1, 0, run_of(builder, kScratch, 2, 2), 1);
    }
  });
  expect_valid();
  programs[2].actions[0].into.slot_ref = programs[2].actions[1].into.slot_ref;
  expect_refused(Property::kHazards,
                 {"scratch slot 1 is read, but nothing has been written to it"});
}

// Neighbours pass on the block that they received last.
TEST_F(Collectives, AllgatherByARing) {
  programs =
      by_rank(*topology, Collective::kAllgather, 8, {1, 3, 0, 2}, [&](auto& builder, auto me) {
        whole(builder, 0);
        builder.copy(0, operand(builder, kOutput, me), operand(builder, kInput, me));
        for (std::uint32_t step = 0; step < 3; ++step) {
          const auto t = static_cast<std::int32_t>(step);
          const std::uint32_t sent = (me + 4 - step) % 4, awaited = (me + 3 - step) % 4;
          builder.receive(t, (me + 3) % 4, operand(builder, kOutput, awaited));
          builder.send(t, (me + 1) % 4, operand(builder, step == 0 ? kInput : kOutput, sent),
                       step == 0 ? 0 : 1);
        }
      });
  expect_valid();
  programs[1].actions[0].into = programs[1].actions[1].into;
  expect_refused(Property::kForm, {"both must be the same block"});
}

TEST_F(Collectives, AllToAllByPairs) {
  programs =
      by_rank(*topology, Collective::kAllToAll, 8, {1, 3, 0, 2}, [&](auto& builder, auto me) {
        whole(builder, 0);
        builder.copy(0, operand(builder, kOutput, me), operand(builder, kInput, me));
        for (std::uint32_t by = 1; by < 4; ++by) {
          const std::uint32_t to = (me + by) % 4, from = (me + 4 - by) % 4;
          if (to == from) {
            builder.send(1, to, operand(builder, kInput, to), 0);
            builder.receive(1, from, operand(builder, kOutput, from));
            continue;
          }
          const auto t = static_cast<std::int32_t>(by - 1);
          builder.send(t, to, operand(builder, kInput, to), 0);
          builder.receive(t, from, operand(builder, kOutput, from));
        }
      });
  expect_valid();
  programs[2].actions[1].a = programs[2].actions[3].a;
  expect_refused(Property::kDataFlow,
                 {"ends with the data of rank 2 for rank 0; it must be that of "
                  "rank 2 for it"});
}

// Step 0: rank r sends to r + 1. Step 1: it sends the ranks heard from to r + 2.
TEST_F(Collectives, BarrierByDissemination) {
  programs = by_rank(*topology, Collective::kBarrier, 8, {1, 2, 0, 1}, [&](auto& builder, auto me) {
    whole(builder, 2);
    const std::uint32_t far = (me + 2) % 4;
    builder.send(0, (me + 1) % 4, operand(builder, kInput, 0), 0);
    builder.receive(0, (me + 3) % 4, operand(builder, kScratch, 0, 0));
    builder.combine(0, operand(builder, kScratch, 0, 0), operand(builder, kInput, 0),
                    operand(builder, kScratch, 0, 0));
    builder.send(1, far, operand(builder, kScratch, 0, 0), 1);
    builder.receive(1, far, operand(builder, kScratch, 0, 1));
  });
  expect_valid();
  const std::vector<OwnedProgram> valid = programs;
  programs[1].actions[3].a = programs[1].actions[0].a;
  programs[1].actions[3].after = 0;
  expect_refused(Property::kDataFlow, {"at its end it has heard of ranks 1-3; it must have"});
  programs = valid;
  for (Program& program : programs) program.blocks[0] = {0, 64};
  expect_refused(Property::kForm, {"one segment of one block"});
  programs = valid;
  programs[3].actions[4].into.buffer = kOutput;
  expect_refused(Property::kDataFlow, {"the output of rank 3 is used"});
}

TEST_F(Collectives, NoOperatorNoCombine) {
  programs = chain_broadcast(*topology);
  Action& last = programs[3].actions[programs[3].actions_count++];
  last = programs[3].actions[0];
  last.kind = ActionKind::kCombine;
  last.has_a = last.has_b = true;
  last.a = last.b = last.into;
  ++programs[3].phases[0].actions;
  expect_refused(Property::kForm, {"takes no operator"});
}

// Ranks 0 .. 3, routers 4, 5 above them, 6 the root: a message of rank 0 goes up and down.
class Routers : public Collectives {
 protected:
  Routers() { make(); }
  void make(const std::string& spec = "fattree:k=2,h=2,c=1") {
    topology = or_throw(topology::parse(spec));
    programs =
        by_rank(*topology, Collective::kBroadcast, 4, {1, 3, 1, 1}, [&](auto& builder, auto me) {
          builder.program.nodes = 7;
          builder.program.port_model = PortModel::kMultiport;
          builder.program.scratch_blocks = me < 4 ? 0 : 5;
          const Operand kept = builder.slot(0, 5);
          if (me == 0) builder.send(0, 4, builder.input(), 0);
          if (me == 4) pass(builder, 1, 0, {1, 6}, kept);
          if (me == 1) builder.receive(1, 4, builder.output());
          if (me == 6) pass(builder, 2, 4, {5}, kept);
          if (me == 5) pass(builder, 3, 6, {2, 3}, kept);
          if (me == 2 || me == 3) builder.receive(3, 5, builder.output());
        });
  }
  static void pass(ProgramBuilder& builder, std::int32_t step, std::uint32_t from,
                   const std::vector<std::uint32_t>& to, const Operand& kept) {
    builder.receive(step - 1, from, kept);
    for (const std::uint32_t node : to) builder.send(step, node, kept, 1);
  }
};

TEST_F(Routers, PassABroadcastOn) {
  const Verdict verdict = verdict_of(*topology, programs);
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
  EXPECT_TRUE(verdict.for_all) << verdict.limited;
  EXPECT_TRUE(verdict.slot && verdict.async);
}

TEST_F(Routers, ReachTheirNeighboursOnly) {
  programs[4].peers[1] = 2;
  expect_refused(Property::kLinks,
                 {"link router 4 (level 1) -> rank 2: fattree:k=2,h=2,c=1 has no such "
                  "link (peer 1 of the program); where routers have programs"});
}

TEST_F(Routers, AllOrNone) {
  for (Program& program : programs) program.nodes = 6;
  programs.pop_back();
  programs[4].peers[2] = 5;
  expect_refused(Property::kForm, {"either all of its routers have one or none"});
}

TEST_F(Routers, AreAskedForToo) {
  programs[6].actions[1].after = 0;
  expect_refused(Property::kHazards, {"router 6 (level 2)"});
  make();
  programs[5].window = 3;
  expect_refused(Property::kForm, {"router 5 (level 1): window is 3, but 4 in rank 0's"});
}

// Rank 0's message goes up in two segments over two lanes at once.
class Lanes : public Collectives {
 protected:
  void make(const std::string& spec) {
    topology = or_throw(topology::parse(spec));
    programs =
        by_rank(*topology, Collective::kBroadcast, 4, {1, 1, 1, 1}, [&](auto& builder, auto me) {
          builder.program.nodes = 3;
          builder.program.port_model = PortModel::kMultiport;
          builder.program.segments = 2;
          builder.program.scratch_blocks = me < 2 ? 0 : 10;
          for (std::int32_t segment = 0; segment < 2; ++segment) {
            if (me == 0) builder.send(0, 2, builder.operand(kInput, segment), 0);
            if (me == 1) builder.receive(1, 2, builder.operand(kOutput, segment));
            if (me != 2) continue;
            Operand kept = builder.operand(kScratch, segment);
            kept.slot_ref = builder.index(segment * 5, 1, 5);
            builder.receive(0, 0, kept);
            builder.send(1, 1, kept, 1);
          }
        });
  }
};

TEST_F(Lanes, CarryAMessageEach) {
  make("fattree:k=2,h=1,c=2");
  for (const Method method : {Method::kPeriodic, Method::kExhaustive}) {
    const Verdict verdict = verdict_of(*topology, programs, {.method = method});
    EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
    EXPECT_TRUE(verdict.slot && verdict.async);
    EXPECT_EQ(verdict.busiest.load, 2u);
    EXPECT_EQ(verdict.busiest.capacity, 2u);
  }
  // In a step they meet in the order of their actions.
  std::swap(programs[1].actions[0].into, programs[1].actions[1].into);
  expect_refused(Property::kMatching, {"awaited, but the other end sends block 0 of segment 0"});
}

TEST_F(Lanes, CarryNoMore) {
  make("fattree:k=2,h=1,c=1");
  for (const Method method : {Method::kPeriodic, Method::kExhaustive}) {
    expect_refused(Property::kPorts, {"too few lanes"}, {.method = method});
  }
}

}  // namespace
}  // namespace espalier::verify

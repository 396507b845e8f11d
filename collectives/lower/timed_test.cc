#include "collectives/lower/timed.h"

#include <gtest/gtest.h>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/lower/timed_rows.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::lower {
namespace {

constexpr Buffer kInput = Buffer::kInput, kOutput = Buffer::kOutput, kScratch = Buffer::kScratch;

CollectiveParameters parameters_for(const topology::Topology& topology, std::uint32_t root) {
  static constexpr BlockRule kBlocks = {0, 64};
  return topology_parameters(topology, root, &kBlocks);
}

TimedSchedule schedule_for(const topology::Topology& topology, Collective collective) {
  TimedSchedule schedule(topology.nodes());
  schedule.outline.collective = collective;
  schedule.outline.algorithm = "by hand";
  schedule.outline.port_model = PortModel::kMultiport;
  schedule.outline.nodes = topology.nodes() > topology.ranks() ? topology.nodes() : 0;
  return schedule;
}

// Ranks 0 and 3 of a line send to rank 1, rank 3 by way of rank 2.
TimedSchedule sum_on_a_line(const topology::Topology& line) {
  TimedSchedule schedule = schedule_for(line, Collective::kReduce);
  const std::uint32_t left[] = {0, 1}, right[] = {2, 1};
  const std::int32_t early[] = {0}, late[] = {3};
  const TimedOperand input = {kInput, 0, -1}, scratch = {kScratch, 0, -1};
  const TimedOperand a = schedule.add_message(0, left, early, input, scratch);
  const TimedOperand b = schedule.add_message(0, right, late, input, scratch);
  const TimedOperand both = schedule.add_operation(ActionKind::kCombine, 1, 3, 0, scratch, a, b);
  (void)schedule.add_operation(ActionKind::kCombine, 1, 3, 0, {kOutput, 0, -1}, input, both);
  schedule.outline.needs_commutative = true;
  return schedule;
}

TEST(Timed, WhatMovesNothingHasNoSteps) {
  const auto host = or_throw(topology::parse("hosts:1x1"));
  const TimedSchedule schedule = schedule_for(*host, Collective::kBroadcast);
  const Programs programs = or_throw(write_programs(parameters_for(*host, 0), schedule));
  const verify::Verdict verdict = verify::verdict_of(*host, programs);
  EXPECT_TRUE(verdict.valid && verdict.for_all) << verdict.counterexample.message;
  EXPECT_EQ(phase_steps(programs[0], 3), 0);
}

TEST(Timed, AnOperationWaitsForAnEarlierBlockByACopyOntoItself) {
  const auto line = or_throw(topology::parse("mesh:1x3"));
  TimedSchedule schedule = sum_on_a_line(*line);
  for (const std::int32_t period : {1, 2, 5}) {
    schedule.period = period;
    Programs programs = or_throw(write_programs(parameters_for(*line, 1), schedule));
    const verify::Verdict verdict = verify::verdict_of(*line, programs);
    EXPECT_TRUE(verdict.valid && verdict.for_all) << verdict.counterexample.message;
    EXPECT_EQ(phase_steps(programs[0], 3), 4 + 2 * period);
    int copies = 0;
    for (std::uint32_t i = 0; i < programs[1].actions_count; ++i) {
      const Action& action = programs[1].actions[i];
      if (action.kind != ActionKind::kCopy) continue;
      ++copies;
      EXPECT_EQ(action.a.slot_ref, action.into.slot_ref);
    }
    EXPECT_EQ(copies, 1);
  }
}

TEST(Timed, ACopyIsNotNeededWhereTheWindowIsGuard) {
  const auto line = or_throw(topology::parse("mesh:1x3"));
  const TimedSchedule schedule = sum_on_a_line(*line);
  CollectiveParameters parameters = parameters_for(*line, 1);
  parameters.window = 3;
  Programs programs = or_throw(write_programs(parameters, schedule));
  EXPECT_TRUE(verify::verdict_of(*line, programs).valid);
  for (std::uint32_t i = 0; i < programs[1].actions_count; ++i) {
    EXPECT_NE(programs[1].actions[i].kind, ActionKind::kCopy);
  }
}

// One block waits `stays` steps in the middle of a line; the next arrives one period later.
TEST(Timed, ABlockThatStaysLongHasSlotsInTurn) {
  const auto line = or_throw(topology::parse("mesh:1x3"));
  for (const std::int32_t stays : {1, 3, 20}) {
    for (const std::int32_t period : {1, 2, 7, 40}) {
      TimedSchedule schedule = schedule_for(*line, Collective::kBroadcast);
      const std::uint32_t way[] = {0, 1, 2}, near[] = {0, 1};
      const std::int32_t steps[] = {0, stays}, later[] = {period > 1 ? 1 : 0};
      schedule.period = period;
      (void)schedule.add_message(0, way, steps, {kInput, 0, -1}, {kOutput, 0, -1});
      if (period == 1) {
        // The link has one lane: rank 1 copies the block that passes.
        const TimedOperand passes = schedule.nodes[1][0].into;
        (void)schedule.add_operation(ActionKind::kCopy, 1, 0, 0, {kOutput, 0, -1}, passes);
      } else {
        (void)schedule.add_message(0, near, later, {kInput, 0, -1}, {kOutput, 0, -1});
      }
      const CollectiveParameters parameters = parameters_for(*line, 0);
      Programs programs = or_throw(write_programs(parameters, schedule));
      const verify::Verdict verdict = verify::verdict_of(*line, programs);
      EXPECT_TRUE(verdict.valid && verdict.for_all) << verdict.counterexample.message;
      const std::int32_t slots =
          (stays + static_cast<std::int32_t>(parameters.window) + period - 1) / period;
      EXPECT_EQ(programs[1].scratch_blocks, static_cast<std::uint32_t>(slots)) << stays << period;
      EXPECT_EQ(programs[1].table.size, 0u) << "few enough actions";
    }
  }
}

// Every rank of a star has a part for every other: too many actions with one instance for the
// router.
TimedSchedule exchange_on_a_star(const topology::Topology& star) {
  TimedSchedule schedule = schedule_for(star, Collective::kAllToAll);
  const auto ranks = static_cast<std::int32_t>(star.ranks());
  for (std::int32_t from = 0; from < ranks; ++from) {
    const auto node = static_cast<std::uint32_t>(from);
    (void)schedule.add_operation(ActionKind::kCopy, node, 0, 0, {kOutput, from, -1},
                                 {kInput, from, -1});
    for (std::int32_t turn = 1; turn < ranks; ++turn) {
      const std::int32_t to = (from + turn) % ranks;
      const std::uint32_t way[] = {node, star.ranks(), static_cast<std::uint32_t>(to)};
      const std::int32_t steps[] = {turn - 1, turn};
      (void)schedule.add_message(0, way, steps, {kInput, to, -1}, {kOutput, from, -1});
    }
  }
  schedule.period = ranks - 1;
  return schedule;
}

TEST(Timed, ManyInstancesLookTheirStepsUp) {
  const auto star = or_throw(topology::parse("fattree:k=12,h=1,c=1"));
  const TimedSchedule schedule = exchange_on_a_star(*star);
  EXPECT_EQ(least_period(*star, schedule, 1), 11);
  EXPECT_EQ(least_period(*star, schedule, 20), 20);
  Programs programs = or_throw(write_programs(parameters_for(*star, 0), schedule));
  const Program& router = programs[12];
  EXPECT_EQ(router.actions_count, 2u) << "132 messages in, 132 out";
  EXPECT_GT(router.table.size, 0u);
  const verify::Verdict verdict = verify::verdict_of(*star, programs);
  EXPECT_TRUE(verdict.valid && verdict.for_all) << verdict.counterexample.message;
}

// 65 operations of one step are 65 actions.
// Segments that arrive one after the other and are copied to OUTPUT in one step.
TimedSchedule copies_in_one_step(const topology::Topology& line, std::int32_t segments) {
  TimedSchedule schedule = schedule_for(line, Collective::kBroadcast);
  schedule.outline.segments = static_cast<std::uint32_t>(segments);
  schedule.period = 2 * segments;
  for (std::int32_t segment = 0; segment < segments; ++segment) {
    const std::uint32_t way[] = {0, 1};
    const std::int32_t steps[] = {segment};
    const TimedOperand arrived =
        schedule.add_message(0, way, steps, {kInput, segment, -1}, {kScratch, segment, -1});
    (void)schedule.add_operation(ActionKind::kCopy, 1, segments + 10, 0, {kOutput, segment, -1},
                                 arrived);
  }
  return schedule;
}

TEST(Timed, OneActionHasUpTo255CopiesOfAStep) {
  const auto line = or_throw(topology::parse("mesh:1x2"));
  const Programs programs =
      or_throw(write_programs(parameters_for(*line, 0), copies_in_one_step(*line, 255)));
  std::uint32_t copies = 0;
  for (std::uint32_t k = 0; k < programs[1].actions_count; ++k) {
    copies += programs[1].actions[k].kind == ActionKind::kCopy ? 1 : 0;
  }
  EXPECT_EQ(copies, 1u);
  const verify::Verdict verdict = verify::verdict_of(*line, programs);
  EXPECT_TRUE(verdict.valid && verdict.for_all) << verdict.counterexample.message;
}

TEST(Timed, SaysWhichTableIsTooSmall) {
  const auto line = or_throw(topology::parse("mesh:1x2"));
  EXPECT_EQ(
      write_programs(parameters_for(*line, 0), copies_in_one_step(*line, 256)).error().message,
      "by hand, node 1: its program needs more than 255 instances of an action in a step, or "
      "numbers of more than 16 bits");
}

// Every message has another `after`, so each is an action with its own link, segment and block.
TimedSchedule relayed_after(const topology::Topology& ring, std::int32_t messages) {
  TimedSchedule schedule = schedule_for(ring, Collective::kBroadcast);
  schedule.outline.segments = static_cast<std::uint32_t>(messages);
  schedule.period = 4 * messages;
  for (std::int32_t k = 0; k < messages; ++k) {
    const std::uint32_t there[] = {0, 1}, onward[] = {1, 2};
    const std::int32_t early[] = {k}, late[] = {2 * k + 1};
    const TimedOperand arrived =
        schedule.add_message(0, there, early, {kInput, k, -1}, {kOutput, k, -1});
    (void)schedule.add_message(0, onward, late, arrived, {kOutput, k, -1});
  }
  return schedule;
}

TEST(Timed, HostsHaveRoomForMoreIndicesThanBoards) {
  const auto ring = or_throw(topology::parse("complete:3"));
  CollectiveParameters parameters = parameters_for(*ring, 0);
  parameters.window = 64;
  const TimedSchedule schedule = relayed_after(*ring, 60);
  EXPECT_EQ(write_programs(parameters, schedule).error().message,
            "by hand, node 1: its program needs 65 indices, and boards have room for 64 (hosts for "
            "more: --limits host)");
  parameters.host_limits = true;
  const Programs programs = or_throw(write_programs(parameters, schedule));
  EXPECT_GT(programs[1].indices_count, 64u);
  const verify::Verdict verdict = verify::verdict_of(*ring, programs);
  EXPECT_TRUE(verdict.valid) << verdict.counterexample.message;
}

// Two messages of one step and link leave in the order of the sender's actions, INPUT before
// scratch. At the receiver OUTPUT would come before scratch.
TEST(Timed, BothEndsHaveTheMessagesOfAStepInOneOrder) {
  TimedInstance from_scratch, from_input, into_output, into_scratch, made;
  from_scratch.kind = from_input.kind = ActionKind::kSend;
  from_scratch.peer = from_input.peer = 1;
  from_scratch.step = from_input.step = into_output.step = into_scratch.step = 3;
  made.kind = into_output.kind = into_scratch.kind = ActionKind::kReceive;
  made.peer = 2;
  made.message = 7;
  made.into = from_scratch.a = {kScratch, 0, 0};
  from_input.a = {kInput, 0, -1};
  into_scratch.into = {kScratch, 0, 0};
  into_output.into = {kOutput, 0, 1};
  from_input.message = into_scratch.message = 1;
  from_scratch.message = into_output.message = 2;
  std::vector<NodeRows> nodes;
  const std::vector<TimedInstance> sender = {made, from_input, from_scratch};
  const std::vector<TimedInstance> receiver = {into_scratch, into_output};
  const std::vector<TimedInstance> third = {};
  nodes.push_back(rows_of(sender, 5, 8));
  nodes.push_back(rows_of(receiver, 5, 8));
  TimedInstance sent{.kind = ActionKind::kSend, .peer = 0, .message = 7, .a = {kInput, 0, -1}};
  const std::vector<TimedInstance> other = {sent};
  nodes.push_back(rows_of(other, 5, 8));
  set_orders(nodes, 5);
  const Row& scratch = nodes[1].rows[0];
  const Row& output = nodes[1].rows[1];
  ASSERT_LT(nodes[0].rows[1].key(), nodes[0].rows[2].key()) << "input goes first";
  EXPECT_LT(scratch.key(), output.key()) << "so scratch comes first";
  EXPECT_EQ(output.turn, 1);
}

}  // namespace
}  // namespace espalier::lower

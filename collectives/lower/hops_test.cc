#include "collectives/lower/hops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/testing/results.h"

namespace espalier::lower {
namespace {

// A message from the sender's input, or from the result of task `after`.
Task message(std::uint32_t from, std::uint32_t to, std::int32_t after = -1) {
  Task task;
  task.kind = ActionKind::kSend;
  task.from = from;
  task.to = to;
  task.a = {after, 0};
  return task;
}

HopGraph hops_of(const topology::Topology& topology, std::vector<Task> tasks,
                 PortModel ports = PortModel::kMultiport, std::vector<InPlace> in_place = {}) {
  return or_throw(find_hops(topology, {1, std::move(tasks), std::move(in_place)}, ports));
}

// No port exceeds its lanes in a step of the period, and no hop runs before its data has arrived.
void check(const HopGraph& hops, const Plan& plan) {
  std::map<std::tuple<std::int32_t, std::int32_t>, std::int32_t> used;
  for (std::size_t hop = 0; hop < hops.all.size(); ++hop) {
    const Hop& one = hops.all[hop];
    const std::int32_t step = plan.steps[hop];
    ASSERT_GE(step, 0);
    EXPECT_LT(step, plan.length);
    for (const std::int32_t before : {one.a, one.b}) {
      if (before < 0) continue;
      const std::int32_t came = plan.steps[static_cast<std::size_t>(before)];
      EXPECT_GE(step, one.port < 0 ? came : came + 1);
    }
    if (one.port >= 0) ++used[{one.port, step % plan.period}];
  }
  for (const auto& [where, many] : used) {
    EXPECT_LE(many, hops.ports[static_cast<std::size_t>(std::get<0>(where))].lanes);
  }
}

// Three messages cross 1 -> 2. The message of rank 0 arrives there in step 0, when one of rank 1
// has already left.
TEST(Steps, AWaitWhereALinkIsWantedTwice) {
  const auto line = or_throw(topology::parse("mesh:1x4"));
  const HopGraph hops = hops_of(*line, {message(0, 2), message(1, 2), message(1, 3)});
  ASSERT_EQ(hops.all.size(), 5u);
  const Plan plan = find_steps(hops, {7, 8});
  EXPECT_EQ(plan.period, 3);
  check(hops, plan);
  std::vector<std::int32_t> crossing;
  for (std::size_t hop = 0; hop < hops.all.size(); ++hop) {
    if (hops.all[hop].from == 1) crossing.push_back(plan.steps[hop]);
  }
  std::sort(crossing.begin(), crossing.end());
  EXPECT_EQ(crossing, (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(plan.length, 3) << "the furthest goes first";
}

TEST(Steps, LanesCarryAsManyAtOnce) {
  for (const auto& [spec, period] :
       {std::pair("fattree:k=2,h=1,c=1", 3), std::pair("fattree:k=2,h=1,c=2", 2),
        std::pair("fattree:k=2,h=1,c=3", 1)}) {
    const auto tree = or_throw(topology::parse(spec));
    const HopGraph hops = hops_of(*tree, {message(0, 1), message(0, 1), message(0, 1)});
    const Plan plan = find_steps(hops, {7, 8});
    EXPECT_EQ(plan.period, period) << spec;
    EXPECT_EQ(plan.length, period + 1) << spec;
    check(hops, plan);
  }
}

// The router sends four times per round, and no link carries more than two.
TEST(Steps, ANodeThatSendsOnceAStep) {
  const auto tree = or_throw(topology::parse("fattree:k=3,h=1,c=1"));
  const std::vector<Task> tasks = {message(0, 1), message(0, 2), message(1, 2), message(2, 0)};
  const HopGraph hops = hops_of(*tree, tasks, PortModel::kSingleSend);
  const Plan plan = find_steps(hops, {7, 8});
  EXPECT_EQ(plan.period, 4);
  check(hops, plan);
  EXPECT_EQ(find_steps(hops_of(*tree, tasks), {7, 8}).period, 2);
}

TEST(Steps, OnlyTheWaitsThatAreAllowed) {
  const auto line = or_throw(topology::parse("mesh:1x4"));
  const HopGraph hops =
      hops_of(*line, {message(0, 3), message(1, 3), message(1, 3), message(2, 3)});
  for (const Waits waits : {Waits{0, 5}, Waits{1, 5}, Waits{4, 5}}) {
    const Plan plan = find_steps(hops, waits);
    EXPECT_EQ(plan.period, 4);
    check(hops, plan);
    for (std::size_t hop = 0; hop < hops.all.size(); ++hop) {
      if (hops.all[hop].a < 0) continue;
      const std::int32_t waited =
          plan.steps[hop] - plan.steps[static_cast<std::size_t>(hops.all[hop].a)];
      EXPECT_TRUE(waited <= waits.near || waited >= waits.far) << waited;
    }
  }
}

// The block that rank 1 receives may share memory with the block that it sends: it arrives a window
// later.
TEST(Steps, AWindowBetweenReadingAndWritingInPlace) {
  const auto line = or_throw(topology::parse("mesh:1x3"));
  const HopGraph hops =
      hops_of(*line, {message(1, 2), message(0, 1)}, PortModel::kMultiport, {{0, 1}});
  const Plan plan = find_steps(hops, {7, 8});
  EXPECT_EQ(plan.steps, (std::vector<std::int32_t>{0, 8}));
}

TEST(Steps, AnOperationRunsWithTheLastThatItNeeds) {
  const auto line = or_throw(topology::parse("mesh:1x4"));
  Task sum;
  sum.kind = ActionKind::kCombine;
  sum.from = sum.to = 2;
  sum.a = {0, 0};
  sum.b = {1, 0};
  const HopGraph hops = hops_of(*line, {message(0, 2), message(3, 2), sum, message(2, 3, 2)});
  const Plan plan = find_steps(hops, {7, 8});
  check(hops, plan);
  EXPECT_EQ(plan.steps, (std::vector<std::int32_t>{0, 1, 0, 1, 2}));
}

TEST(Steps, AreTheSameAgain) {
  const auto mesh = or_throw(topology::parse("mesh:4x4"));
  std::vector<Task> tasks;
  for (std::uint32_t i = 0; i < 60; ++i) tasks.push_back(message(i * 7 % 16, (i * 11 + 1) % 16));
  std::erase_if(tasks, [](const Task& task) { return task.from == task.to; });
  const HopGraph hops = hops_of(*mesh, tasks);
  const Plan once = find_steps(hops, {7, 8}), again = find_steps(hops, {7, 8});
  check(hops, once);
  EXPECT_EQ(once.steps, again.steps);
  EXPECT_STREQ(once.order, again.order);
}

}  // namespace
}  // namespace espalier::lower

#include "collectives/lower/graph.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/build/builder.h"

namespace espalier::lower {
namespace {

Programs routed(Collective collective, const char* name, std::uint32_t ranks,
                std::uint32_t run_length = 0) {
  return must_generate(collective, name,
                       {.ranks = ranks, .topology_digest = 1, .run_length = run_length});
}

Graph graph_of(const Programs& programs) { return or_throw(find_graph(programs)); }

TEST(Graph, OfAChainIsItsMessages) {
  const Graph graph = graph_of(routed(Collective::kBroadcast, "chain", 4));
  EXPECT_EQ(graph.blocks, 1);
  ASSERT_EQ(graph.tasks.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Task& task = graph.tasks[i];
    EXPECT_EQ(task.kind, ActionKind::kSend);
    EXPECT_EQ(task.from, i);
    EXPECT_EQ(task.to, i + 1);
    EXPECT_TRUE(task.output);
    EXPECT_EQ(task.a.task, static_cast<std::int32_t>(i) - 1) << "the root sends its input";
  }
}

TEST(Graph, HasAsManyBlocksAsTheScheduleRepeatsAfter) {
  for (const std::uint32_t run_length : {1u, 2u, 3u, 5u}) {
    const Graph graph = graph_of(routed(Collective::kBroadcast, "fractional", 8, run_length));
    EXPECT_EQ(graph.blocks, static_cast<std::int32_t>(run_length));
    EXPECT_EQ(graph.tasks.size(), 7 * run_length) << "each block once to each rank but the root";
  }
}

// The rounds of a circulant graph begin with block 1, because block 0 takes a way of its own.
TEST(Graph, BeginsAfterAnExceptionalBlock) {
  for (const std::uint32_t ranks : {5u, 8u, 13u}) {
    const std::uint32_t rounds = log2_ceil(ranks);
    const Graph graph = graph_of(routed(Collective::kBroadcast, "circulant", ranks));
    EXPECT_EQ(graph.blocks, static_cast<std::int32_t>(rounds));
    EXPECT_EQ(graph.tasks.size(), (ranks - 1) * rounds);
    for (const Task& task : graph.tasks) {
      EXPECT_TRUE(task.block >= 0 && task.block < graph.blocks);
    }
  }
}

TEST(Graph, SplitsRunsOfSegments) {
  // The root sends parts 2 and 3 as one message to rank 2, which forwards part 3.
  const Graph graph = graph_of(routed(Collective::kScatter, "binomial", 4));
  std::map<std::int32_t, int> hops;  // by segment
  for (const Task& task : graph.tasks) {
    if (task.kind == ActionKind::kSend) ++hops[task.segment];
  }
  EXPECT_EQ(hops, (std::map<std::int32_t, int>{{1, 1}, {2, 1}, {3, 2}}));
}

// Holds for all intermediate values that the routed schedule keeps in OUTPUT.
TEST(Graph, WritesEachOutputOnce) {
  for (const auto& [collective, name] :
       {std::pair(Collective::kAllreduce, "two-tree"), std::pair(Collective::kScan, "two-tree"),
        std::pair(Collective::kReduceScatter, "ring")}) {
    const Graph graph = graph_of(routed(collective, name, 9));
    std::map<std::tuple<std::uint32_t, std::int32_t, std::int32_t>, int> written;
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
      const Task& task = graph.tasks[i];
      if (task.output) ++written[{task.to, task.segment, task.block}];
      EXPECT_LT(task.a.task, static_cast<std::int32_t>(i));
      EXPECT_LT(task.b.task, static_cast<std::int32_t>(i));
    }
    const std::size_t segments = collective == Collective::kReduceScatter ? 1 : 2;
    EXPECT_EQ(written.size(), 9 * segments) << name;
    for (const auto& [place, times] : written) EXPECT_EQ(times, 1) << name;
  }
}

// An allreduce reads all input of a rank before its result arrives; an exchange cannot.
TEST(Graph, KeepsTheOrderThatInPlaceNeeds) {
  const Graph sum = graph_of(routed(Collective::kAllreduce, "two-tree", 8));
  EXPECT_FALSE(sum.in_place.empty());
  for (const InPlace& order : sum.in_place) {
    const Task& then = sum.tasks[static_cast<std::size_t>(order.then)];
    const Task& first = sum.tasks[static_cast<std::size_t>(order.first)];
    EXPECT_TRUE(then.output);
    EXPECT_EQ(then.to, first.from);
  }
  EXPECT_TRUE(graph_of(routed(Collective::kAllToAll, "pairwise", 4)).in_place.empty());
}

// Block 1 goes to rank 1 alone, all others to rank 2.
TEST(Graph, RefusesSchedulesThatDoNotRepeat) {
  Programs programs(3);
  CollectiveParameters parameters{.ranks = 3, .topology_digest = 1};
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    Builder builder(programs[rank]);
    ASSERT_EQ(
        builder.begin(parameters, rank, {.collective = Collective::kBroadcast, .algorithm = "odd"}),
        Status::kOk);
    const std::uint8_t once = builder.count(1, 0);
    // Moves block `first` in step `first`, and the following blocks in the steps after it.
    const auto move = [&](std::uint32_t to, std::uint32_t first) -> Action& {
      Index row{};
      row.base = static_cast<std::int32_t>(first);
      row.coef = 1;
      Operand data = rank == 0 ? builder.input(0) : builder.output(0);
      data.block_ref = builder.index(row);
      return rank == 0 ? builder.send(first, to, data, 0) : builder.receive(first, 0, data);
    };
    if (rank != 1) {
      move(2, 0).instances_ref = once;
      move(2, 2);
    }
    if (rank != 2) move(1, 1).instances_ref = once;
    builder.phase(1, 0, 1);
    ASSERT_EQ(builder.finish(1, 0), Status::kOk);
  }
  Graph graph;
  EXPECT_EQ(find_graph(programs).error().message,
            "what it does with a block does not repeat after any number of blocks up to 64, so "
            "there is no period to lower");
}

TEST(Graph, RefusesInvalidSchedules) {
  Programs programs = routed(Collective::kBroadcast, "chain", 4);
  programs[1].actions_count = 0;
  programs[1].phases[0].actions = 0;
  Graph graph;
  EXPECT_EQ(find_graph(programs).error().message,
            "rank 2, step 1: nothing like it is sent; verify the routed schedule first");
  EXPECT_EQ(find_graph({}).error().message, "there are no programs");
}

}  // namespace
}  // namespace espalier::lower

// in-network and breadth-first: proven for every N in the steps of their formulas, and run on
// simulated machines with the reference's results, by an operator that does not commute where the
// schedule keeps the order of ranks. Depths are counted from the topology's routes.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "espalier/collectives/search.h"
#include "tests/grid/grid.h"

namespace espalier::grid {
namespace {

constexpr std::array kCollectives = {Collective::kBroadcast, Collective::kReduce,
                                     Collective::kAllreduce, Collective::kScan,
                                     Collective::kExscan,    Collective::kBarrier};

// Ranks 2 and 3 have ranks below them; router 8 has none, and is not in the tree.
const std::string kRanksInside =
    "custom:name: 'ranks-inside' ranks: 6 routers: 3 link { from: 0 to: 6 } link { from: 1 to: 6 } "
    "link { from: 6 to: 2 } link { from: 2 to: 7 } link { from: 7 to: 3 } link { from: 3 to: 4 } "
    "link { from: 7 to: 5 } link { from: 8 to: 7 }";
// The centre is rank 1, and its block belongs between those of its two routers.
const std::string kRankAtTheCentre =
    "custom:name: 'rank-at-the-centre' ranks: 5 routers: 2 link { from: 0 to: 5 } "
    "link { from: 5 to: 1 } link { from: 1 to: 6 } link { from: 6 to: 2 } link { from: 6 to: 3 } "
    "link { from: 1 to: 4 }";
// Router 5 has ranks 0 and 3: no router keeps the order.
const std::string kUnordered =
    "custom:name: 'unordered' ranks: 5 routers: 3 link { from: 0 to: 5 } link { from: 3 to: 5 } "
    "link { from: 5 to: 6 } link { from: 6 to: 7 } link { from: 7 to: 1 } link { from: 7 to: 4 } "
    "link { from: 6 to: 2 }";

bool is_scan(Collective collective) {
  return collective == Collective::kScan || collective == Collective::kExscan;
}

Result<Programs> find(Collective collective, const topology::Topology& topology,
                      std::uint32_t root = 0, std::uint32_t window = 8,
                      const char* algorithm = "in-network") {
  CollectiveParameters parameters = topology_parameters(topology, root, &kBlocks);
  parameters.window = window;
  return searched::find_searched(collective, algorithm)->search(topology, parameters);
}

// The links on the longest route from `node` to a rank.
std::int64_t furthest(const topology::Topology& topology, std::uint32_t node) {
  std::size_t most = 0;
  for (std::uint32_t rank = 0; rank < topology.ranks(); ++rank) {
    if (rank != node) most = std::max(most, topology.route(node, rank).size() - 1);
  }
  return static_cast<std::int64_t>(most);
}

std::int64_t depth(const topology::Topology& topology) {
  std::int64_t least = furthest(topology, 0);
  for (std::uint32_t node = 1; node < topology.nodes(); ++node) {
    least = std::min(least, furthest(topology, node));
  }
  return least;
}

void expect_steps(const topology::Topology& topology, const Programs& programs, std::int64_t steps,
                  const std::string& name) {
  const std::int64_t depth = grid::depth(topology);
  switch (programs[0].collective) {
    case Collective::kBroadcast:
      EXPECT_EQ(steps, furthest(topology, programs[0].root)) << name;
      break;
    case Collective::kReduce:
      EXPECT_GE(steps, furthest(topology, programs[0].root)) << name;
      EXPECT_LE(steps, 2 * depth) << name;
      break;
    default: EXPECT_EQ(steps, 2 * depth) << name;
  }
}

// Returns the number of schedules.
std::uint32_t prove_and_run(const topology::Topology& topology, bool keeps_order) {
  std::uint32_t schedules = 0;
  for (const Collective collective : kCollectives) {
    if (is_scan(collective) && !keeps_order) continue;
    for (std::uint32_t root = 0; root < (has_root(collective) ? topology.ranks() : 1); ++root) {
      if (!whole() && root > 2 && root + 1 < topology.ranks()) continue;
      for (const std::uint32_t window : {1u, 2u, 8u, 16u}) {
        if (window != 8 && root > 0) continue;
        const std::string name = std::string(collective_name(collective)) + " on " +
                                 topology.title() + ", root " + std::to_string(root) + ", window " +
                                 std::to_string(window);
        const Programs programs = or_throw(find(collective, topology, root, window));
        const bool orders =
            collective == Collective::kReduce || collective == Collective::kAllreduce;
        EXPECT_EQ(programs[0].needs_commutative, orders && !keeps_order) << name;
        const verify::Verdict verdict = verified(topology, programs, 0, name);
        EXPECT_TRUE(verdict.for_all) << name << ": " << verdict.limited;
        EXPECT_TRUE(verdict.async) << name;
        EXPECT_TRUE(verdict.in_place) << name;
        expect_steps(topology, programs, verdict.steps_at_one, name);
        for (const std::int64_t blocks : {1, 2, 7, 20}) {
          if (::testing::Test::HasFailure()) return schedules;
          CollectiveParameters parameters{.root = root};
          if (window == 8 || blocks == 7) run(programs, parameters, blocks, name);
        }
        ++schedules;
      }
    }
  }
  return schedules;
}

TEST(Grid, InNetwork) {
  std::vector<std::string> specs = {"fattree:k=2,h=1,c=1",
                                    "fattree:k=2,h=3,c=1",
                                    "fattree:k=3,h=2,c=k",
                                    "fattree:k=3x2,c=1",
                                    "fattree:k=2x3,c=1",
                                    "crossbar:1x5",
                                    "crossbar:2x3",
                                    "crossbar:2x2x2",
                                    "hosts:3x3",
                                    "hosts:2x1",
                                    kRanksInside,
                                    kRankAtTheCentre,
                                    "file:" ESPALIER_EXAMPLES "/uneven-tree.textproto"};
  if (whole()) specs.insert(specs.end(), {"fattree:k=8,h=2,c=1", "crossbar:4x6", "hosts:8x4"});
  std::uint32_t schedules = 0;
  for (const std::string& spec : specs) {
    schedules += prove_and_run(*or_throw(topology::read(spec)), true);
    if (HasFailure()) return;
  }
  schedules += prove_and_run(*or_throw(topology::read(kUnordered)), false);
  std::printf("%u schedules verified and run\n", schedules);
}

void prove_and_run_breadth_first(const topology::Topology& topology) {
  for (const Collective collective : {Collective::kBroadcast, Collective::kReduce,
                                      Collective::kAllreduce, Collective::kBarrier}) {
    for (const std::uint32_t root : {0u, topology.ranks() - 1}) {
      if (root > 0 && !has_root(collective)) continue;
      const std::string name = std::string(collective_name(collective)) + " by breadth-first on " +
                               topology.title() + ", root " + std::to_string(root);
      const Programs programs = or_throw(find(collective, topology, root, 8, "breadth-first"));
      const verify::Verdict verdict = verified(topology, programs, 0, name);
      EXPECT_TRUE(verdict.for_all && verdict.async && verdict.in_place) << name;
      const std::int64_t steps =
          has_root(collective) ? furthest(topology, root) : 2 * depth(topology);
      if (topology.ranks() > 1) {
        EXPECT_EQ(verdict.steps_at_one, steps) << name;
      }
      for (const std::int64_t blocks : {1, 2, 7}) {
        CollectiveParameters parameters{.root = root};
        run(programs, parameters, blocks, name);
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(Grid, BreadthFirst) {
  for (const std::string& spec :
       {std::string("complete:1"), std::string("complete:2"), std::string("complete:9"),
        std::string("mesh:3x4"), std::string("ring:7"), std::string("torus:4x4"),
        std::string("hypercube:4"), std::string("fattree:k=3,h=2,c=k"), kRanksInside,
        kRankAtTheCentre, kUnordered}) {
    prove_and_run_breadth_first(*or_throw(topology::read(spec)));
    if (HasFailure()) return;
  }
}

// The figure of docs/results/in_network.md: 64 leaves and 21 routers take six steps for the first
// block, and one more for each further one. No schedule takes fewer.
TEST(Grid, InNetworkAllreduceOnALargeTree) {
  const auto topology = or_throw(topology::parse("fattree:k=4,h=3,c=1"));
  const Programs programs = or_throw(find(Collective::kAllreduce, *topology));
  ASSERT_EQ(programs.size(), 85u);
  const verify::Verdict verdict = verified(*topology, programs, 0, "fattree:k=4,h=3,c=1");
  EXPECT_TRUE(verdict.for_all);
  const auto& counts = programs[0].counts;
  for (const std::int64_t blocks : {1, 2, 100, 1 << 20}) {
    EXPECT_EQ(count_value(counts[programs[0].steps_ref], blocks), 2 * 3 + blocks - 1);
    EXPECT_EQ(count_value(counts[programs[0].bound_ref], blocks), 2 * 3 + blocks - 1);
  }
  for (const std::int64_t blocks : {1, 20}) run(programs, {}, blocks, "fattree:k=4,h=3,c=1");
}

TEST(Grid, BreadthFirstRefuses) {
  const auto refusal = [](const std::string& spec) {
    const auto topology = or_throw(topology::parse(spec));
    return message_of(find(Collective::kBroadcast, *topology, 0, 8, "breadth-first"));
  };
  EXPECT_EQ(
      refusal("mesh:1x257"),
      "breadth-first on mesh:1x257: expected at most 256 nodes, and at most 16 links per node");
  EXPECT_EQ(refusal("custom:name: 'one' ranks: 1 routers: 1 link { from: 0 to: 1 }"),
            "breadth-first on one: expected at least two ranks, or no router");
}

// One rank and a router: no tree or flow has anything to carry.
TEST(Grid, PackedTreesAndTimeExpandedRefuseOneRankWithRouters) {
  const auto topology = or_throw(topology::parse("hosts:1x1"));
  const auto refusal = [&](Collective collective, const char* algorithm) {
    return message_of(find(collective, *topology, 0, 8, algorithm));
  };
  for (const Collective collective :
       {Collective::kBroadcast, Collective::kReduce, Collective::kAllreduce, Collective::kAllgather,
        Collective::kReduceScatter}) {
    EXPECT_EQ(refusal(collective, "packed-trees"),
              "packed-trees on hosts:1x1: expected at least two ranks, or no router");
  }
  for (const Collective collective : {Collective::kAllgather, Collective::kReduceScatter}) {
    EXPECT_EQ(refusal(collective, "time-expanded"),
              "time-expanded on hosts:1x1: expected at least two ranks, or no router");
  }
}

TEST(Grid, InNetworkRefuses) {
  const auto refusal = [](Collective collective, const std::string& spec) {
    return message_of(find(collective, *or_throw(topology::parse(spec))));
  };
  EXPECT_EQ(refusal(Collective::kAllreduce, "complete:4"),
            "in-network on complete:4: expected routers, and at least two ranks");
  EXPECT_EQ(refusal(Collective::kBarrier, "hosts:1x1"),
            "in-network on hosts:1x1: expected routers, and at least two ranks");
  EXPECT_EQ(refusal(Collective::kScan, kUnordered),
            "in-network on unordered: a router's ranks are not consecutive, so no scan keeps their "
            "order");
  EXPECT_EQ(refusal(Collective::kAllreduce, "crossbar:2x30"),
            "in-network on crossbar:2x30: router 60 (port of module 0) has 30 children in the "
            "tree, and its program has no room for them; expected fewer");
  EXPECT_EQ(refusal(Collective::kAllreduce, "crossbar:256x64"),
            "in-network on crossbar:256x64: 16641 nodes and 1065472 links are too many to search "
            "for the centre");
  EXPECT_EQ(refusal(Collective::kBroadcast,
                    "custom:name: 'one-way' ranks: 2 routers: 1 link { from: 0 to: 2 } "
                    "link { from: 2 to: 1 one_way: true } link { from: 1 to: 0 one_way: true }"),
            "in-network on one-way: expected links in both directions between all ranks");
}

}  // namespace
}  // namespace espalier::grid

// Packed trees and paths on random graphs: the trees and paths themselves, and the schedules,
// proven and run. Random graphs come from their seeds. All of them with ESPALIER_WHOLE=1, otherwise
// a sample.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/search/packing/exchange_flow.h"
#include "collectives/search/packing/path_packing.h"
#include "collectives/search/packing/tree_packing.h"
#include "collectives/simulation/testing/job_cluster.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/search.h"
#include "espalier/collectives/verify/verify.h"
#include "tests/graphs/graph_list.h"
#include "tests/grid/grid.h"
#include "tests/whole.h"

namespace espalier::graphs {
namespace {

using searched::PackingGraph;
using searched::PackingLink;
using searched::PackingRate;

constexpr BlockRule kBlocks = {0, 64};
// All-to-all only if there is Clp.
std::vector<Collective> collectives() {
  std::vector<Collective> all = {Collective::kBroadcast, Collective::kReduce,
                                 Collective::kAllgather, Collective::kReduceScatter,
                                 Collective::kAllreduce};
  if (const char* missing = searched::missing_flow_solver()) {
    std::printf("no all-to-all: %s\n", missing);
  } else {
    all.push_back(Collective::kAllToAll);
  }
  return all;
}

struct RandomCase {
  std::string spec;
  std::uint32_t root = 0;
};

RandomCase random_case(std::uint64_t seed) {
  const auto ranks = static_cast<std::uint32_t>(2 + seed % 9);
  const auto routers = static_cast<std::uint32_t>(seed / 9 % 4);
  const auto more = static_cast<std::uint32_t>(seed / 36 % 3 * ranks / 2);
  return {random_graph(seed, ranks, routers, more, seed % 5 == 0),
          static_cast<std::uint32_t>(seed % ranks)};
}

PackingGraph graph_of(const topology::Topology& topology) {
  PackingGraph graph{topology.ranks(), topology.nodes(), {}};
  for (const topology::Link& link : topology.links()) {
    graph.links.push_back({link.from, link.to, link.capacity});
  }
  return graph;
}

Result<Programs> search(Collective collective, const topology::Topology& topology,
                        std::uint32_t root = 0, const char* algorithm = nullptr) {
  CollectiveParameters parameters = topology_parameters(topology, root, &kBlocks);
  const bool exchanges = collective == Collective::kAllToAll;
  if (algorithm == nullptr) algorithm = exchanges ? "packed-paths" : "packed-trees";
  return searched::find_searched(collective, algorithm)->search(topology, parameters);
}

// The greatest |roots in U| / B(U) of all sets U of nodes without some rank, tried one by one.
PackingRate rate_by_all_cuts(const PackingGraph& graph, const std::vector<std::uint32_t>& roots) {
  PackingRate best{0, 1};
  for (std::uint32_t cut = 1; cut + 1 < 1u << graph.nodes; ++cut) {
    const auto inside = [&](std::uint32_t node) { return (cut >> node & 1) != 0; };
    bool all = true;
    for (std::uint32_t rank = 0; rank < graph.ranks; ++rank) all = all && inside(rank);
    if (all) continue;
    std::int64_t blocks = 0, lanes = 0;
    for (const std::uint32_t root : roots) blocks += inside(root) ? 1 : 0;
    for (const PackingLink& link : graph.links) {
      if (inside(link.from) && !inside(link.to)) lanes += link.lanes;
    }
    if (blocks * best.blocks > best.steps * lanes) best = {blocks, lanes};
  }
  const std::int64_t by = std::gcd(best.steps, best.blocks);
  return {best.steps / by, best.blocks / by};
}

// Checks a packing against the graph alone: as many trees as the rate says, each of which reaches
// every rank once over links, and no link in more trees than its lanes allow.
void check_packing(const PackingGraph& graph, const std::vector<std::uint32_t>& roots,
                   const searched::TreePacking& packing, const std::string& name) {
  ASSERT_EQ(packing.trees.size(), roots.size() * static_cast<std::size_t>(packing.rate.blocks))
      << name;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> loads;
  for (const searched::PackedTree& tree : packing.trees) {
    std::set<std::uint32_t> reached = {tree.root};
    for (const searched::PackedEdge& edge : tree.edges) {
      ASSERT_TRUE(reached.count(edge.front()) > 0) << name;
      ASSERT_TRUE(reached.insert(edge.back()).second) << name;
      for (std::size_t hop = 1; hop < edge.size(); ++hop) {
        ++loads[{edge[hop - 1], edge[hop]}];
        if (hop + 1 < edge.size()) {
          ASSERT_GE(edge[hop], graph.ranks) << name;
        }
      }
    }
    for (std::uint32_t rank = 0; rank < graph.ranks; ++rank) {
      ASSERT_EQ(reached.count(rank), 1u) << name << ", rank " << rank;
    }
  }
  for (const PackingLink& link : graph.links) {
    const auto used = loads.find({link.from, link.to});
    if (used == loads.end()) continue;
    EXPECT_LE(used->second, link.lanes * packing.rate.steps) << name;
    loads.erase(used);
  }
  EXPECT_TRUE(loads.empty()) << name << ": a tree has an edge that is no link";
}

TEST(TreePacking, AtTheBestRateOfAllCuts) {
  const std::uint64_t seeds = whole() ? 2000 : small_sample() ? 40 : 150;
  std::uint64_t split = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const RandomCase one = random_case(seed);
    const auto topology = or_throw(topology::parse(one.spec));
    const PackingGraph graph = graph_of(*topology);
    std::vector<std::uint32_t> all(graph.ranks);
    std::iota(all.begin(), all.end(), 0);
    for (const auto& roots : {std::vector<std::uint32_t>{one.root}, all}) {
      const PackingRate rate = or_throw(searched::best_rate(graph, roots));
      const PackingRate by_cuts = rate_by_all_cuts(graph, roots);
      ASSERT_EQ(rate.steps, by_cuts.steps) << one.spec;
      ASSERT_EQ(rate.blocks, by_cuts.blocks) << one.spec;
      for (const searched::TreeShape& shape :
           {searched::TreeShape{}, searched::TreeShape{true, false}, {false, true}, {true, true}}) {
        const auto packing = or_throw(searched::pack_trees(graph, roots, rate, shape));
        check_packing(graph, roots, packing, one.spec);
        // As many lanes enter as leave every node, so the rate is reached.
        EXPECT_EQ(packing.rate.steps, rate.steps) << one.spec;
        for (const auto& tree : packing.trees) {
          for (const auto& edge : tree.edges) split += edge.size() > 2 ? 1 : 0;
        }
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(split, 0u) << "no edge goes around a router";
}

TEST(TreePacking, FewerBlocksAreNeverFasterAndNeverFarOff) {
  for (std::int64_t steps = 1; steps <= 60; ++steps) {
    for (std::int64_t blocks = 1; blocks <= 60; ++blocks) {
      for (const std::int64_t most : {1, 4, 16, 64}) {
        const PackingRate rate = searched::rate_of({steps, blocks}, most);
        EXPECT_LE(rate.blocks, most);
        EXPECT_GE(rate.steps * blocks, steps * rate.blocks);
        if (blocks <= most) {
          EXPECT_EQ(rate.steps * blocks, steps * rate.blocks);
        }
        // A step more than the exact number of each round.
        EXPECT_LE((rate.steps * blocks - steps * rate.blocks) * most, 2 * blocks * rate.blocks);
      }
    }
  }
}

TEST(TreePacking, NamesARankThatIsNotReached) {
  const PackingGraph graph{3, 3, {{0, 1, 1}, {1, 0, 1}, {2, 0, 1}}};
  EXPECT_EQ(message_of(searched::best_rate(graph, {0})), "no links lead from rank 0 to rank 2");
}

// Returns the steps for one block.
std::int64_t prove_and_run(Collective collective, const std::string& spec, std::uint32_t root,
                           const char* algorithm = nullptr) {
  const auto topology = or_throw(topology::parse(spec));
  const Programs programs = or_throw(search(collective, *topology, root, algorithm));
  const std::string name = std::string(collective_name(collective)) + " on " + spec;
  const verify::Verdict verdict = grid::verified(*topology, programs, 0, name);
  EXPECT_TRUE(verdict.slot && verdict.for_all) << name << ": " << verdict.limited;
  const sim::Model model =
      testing::model_for(programs[0], [&](std::uint32_t from, std::uint32_t to) {
        return std::max(1u, topology->capacity(from, to));  // credits go back on one-way links
      });
  const Count& steps = programs[0].counts[programs[0].steps_ref];
  const std::int64_t round = steps.c == 0 ? 1 : steps.e;
  for (const std::int64_t blocks : {std::int64_t{1}, round, round + 1, 3 * round}) {
    testing::Job job = testing::sum_job(programs, root, static_cast<std::uint64_t>(blocks), 5);
    const sim::RunResult result = testing::run_in_lock_step(programs, job, model);
    EXPECT_LE(result.steps, phase_steps(programs[0], blocks)) << name << ", N " << blocks;
    if (blocks != round + 1) continue;
    testing::JobCluster::Options options;
    options.model = model;
    options.unwilling = true;
    testing::run_freely(programs, job, options);
  }
  return verdict.steps_at_one;
}

TEST(PackedTrees, OnRandomGraphs) {
  const std::uint64_t seeds = whole() ? 400 : small_sample() ? 4 : 16;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const RandomCase one = random_case(seed * 7);
    for (const Collective collective : collectives()) {
      prove_and_run(collective, one.spec, has_root(collective) ? one.root : 0);
      if (HasFailure()) return;
    }
  }
}

TEST(PackedTrees, OnTheGraphsOfThePage) {
  const std::vector<NamedGraph> graphs = graph_list();
  ASSERT_EQ(graphs.size(), 20u);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    if (!sampled(i, small_sample() ? 20 : 10)) continue;
    if (or_throw(topology::parse(graphs[i].spec))->nodes() > (whole() ? 64 : 24)) continue;
    for (const Collective collective : collectives()) {
      prove_and_run(collective, graphs[i].spec, 0);
      if (HasFailure()) return;
    }
  }
}

// The lower bound of an allgather of one block: the furthest rank, and the lanes into a rank.
std::int64_t least_gathering(const topology::Topology& topology) {
  const PackingGraph graph = searched::packing_graph(topology);
  std::vector<std::vector<std::int64_t>> away(graph.nodes,
                                              std::vector<std::int64_t>(graph.nodes, 1000));
  std::vector<std::int64_t> into(graph.nodes, 0);
  for (std::uint32_t node = 0; node < graph.nodes; ++node) away[node][node] = 0;
  for (const PackingLink& link : graph.links) {
    away[link.from][link.to] = 1;
    into[link.to] += link.lanes;
  }
  std::int64_t least = 0;
  for (std::uint32_t over = 0; over < graph.nodes; ++over) {
    for (auto& from : away) {
      for (std::uint32_t to = 0; to < graph.nodes; ++to) {
        from[to] = std::min(from[to], from[over] + away[over][to]);
      }
    }
  }
  for (std::uint32_t rank = 0; rank < graph.ranks; ++rank) {
    least =
        std::max(least, (graph.ranks - 1 + into[rank] - 1) / std::max<std::int64_t>(1, into[rank]));
    for (std::uint32_t from = 0; from < graph.ranks; ++from) {
      least = std::max(least, away[from][rank]);
    }
  }
  return least;
}

// On graphs without routers the search is hardly ever above the bound.
TEST(TimeExpanded, InFewSteps) {
  const std::uint64_t seeds = whole() ? 400 : small_sample() ? 4 : 24;
  std::int64_t above = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const RandomCase one = random_case(seed * 5);
    const auto topology = or_throw(topology::parse(one.spec));
    const std::int64_t least = least_gathering(*topology);
    for (const Collective collective : {Collective::kAllgather, Collective::kReduceScatter}) {
      const std::int64_t steps = prove_and_run(collective, one.spec, 0, "time-expanded");
      if (HasFailure()) return;
      if (topology->nodes() == topology->ranks() && collective == Collective::kAllgather) {
        EXPECT_GE(steps, least) << one.spec;
        EXPECT_LE(steps, 2 * least) << one.spec;
        above += steps > least ? 1 : 0;
      }
    }
  }
  EXPECT_LE(above * 4, static_cast<std::int64_t>(seeds));
}

TEST(PackedTrees, OnShapesByName) {
  for (const char* spec : {"complete:1", "complete:2", "complete:5", "mesh:3x3",
                           "fattree:k=2,h=2,c=k", "crossbar:2x3", "hosts:2x2"}) {
    for (const Collective collective : collectives()) {
      prove_and_run(collective, spec, 0);
      if (HasFailure()) return;
    }
    for (const Collective collective : {Collective::kAllgather, Collective::kReduceScatter}) {
      prove_and_run(collective, spec, 0, "time-expanded");
      if (HasFailure()) return;
    }
  }
}

TEST(PackedTrees, TheSameEveryTime) {
  const std::string spec = random_case(77).spec;
  const auto topology = or_throw(topology::parse(spec));
  for (const Collective collective : collectives()) {
    const Programs first = or_throw(search(collective, *topology));
    const Programs second = or_throw(search(collective, *topology));
    EXPECT_EQ(first[0].schedule_digest, second[0].schedule_digest);
  }
}

// The graph with one lane less in both directions of a link, or without the link.
std::string with_less(const std::string& name, const topology::Topology& topology,
                      std::size_t weakened) {
  std::string spec = "custom: name: \"" + name + "\" ranks: " + std::to_string(topology.ranks());
  const std::uint32_t routers = topology.nodes() - topology.ranks();
  if (routers > 0) spec += " routers: " + std::to_string(routers);
  std::size_t number = 0;
  for (const topology::Link& link : topology.links()) {
    if (link.from > link.to) continue;
    const std::uint32_t lanes = link.capacity - (number++ == weakened ? 1 : 0);
    if (lanes == 0) continue;
    spec += " link { from: " + std::to_string(link.from) + " to: " + std::to_string(link.to) +
            " capacity: " + std::to_string(lanes) + " }";
  }
  return spec;
}

// Trees that use all lanes of a link do not fit if it has one lane less: the verifier refuses the
// programs there.
TEST(PackedTrees, ALaneTooFewIsFound) {
  std::uint32_t refused = 0, accepted = 0;
  for (const std::uint64_t seed : {11u, 40u, 77u, 101u, 122u, 151u}) {
    const RandomCase one = random_case(seed);
    const auto topology = or_throw(topology::parse(one.spec));
    const std::size_t links = topology->link_count() / 2;
    for (std::size_t weakened = 0; weakened < links; ++weakened) {
      const auto less = topology::parse(with_less("random", *topology, weakened));
      if (!less) continue;  // not connected
      for (const Collective collective : {Collective::kBroadcast, Collective::kAllgather}) {
        Programs programs = or_throw(search(collective, *topology, 0));
        for (Program& program : programs) program.topology_digest = (*less)->digest();
        const verify::Verdict verdict = verify::verdict_of(**less, programs);
        verdict.valid ? ++accepted : ++refused;
        if (verdict.valid) continue;
        const verify::Property property = verdict.counterexample.property;
        EXPECT_TRUE(property == verify::Property::kPorts || property == verify::Property::kLinks ||
                    property == verify::Property::kForm || property == verify::Property::kSteps)
            << verdict.counterexample.message;
      }
    }
  }
  EXPECT_GT(refused, accepted);
}

// The paths of a packing against the graph alone: as many for every pair as the rate says, over
// links, and no link in more paths than its lanes allow.
void check_paths(const PackingGraph& graph, const searched::PathPacking& packing,
                 const std::string& name) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> loads;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> found;
  for (const searched::PackedPath& path : packing.paths) {
    ASSERT_NE(path.origin, path.target) << name;
    ASSERT_LT(path.number, packing.rate.blocks) << name;
    ASSERT_TRUE(found.insert({path.origin, path.target, path.number}).second) << name;
    ASSERT_EQ(path.nodes.front(), path.origin) << name;
    ASSERT_EQ(path.nodes.back(), path.target) << name;
    for (std::size_t hop = 1; hop < path.nodes.size(); ++hop) {
      ++loads[{path.nodes[hop - 1], path.nodes[hop]}];
    }
    const std::set<std::uint32_t> visited(path.nodes.begin(), path.nodes.end());
    ASSERT_EQ(visited.size(), path.nodes.size()) << name << ": a path visits a node twice";
  }
  ASSERT_EQ(found.size(),
            graph.ranks * (graph.ranks - 1) * static_cast<std::size_t>(packing.rate.blocks))
      << name;
  for (const PackingLink& link : graph.links) {
    const std::int64_t load = loads[{link.from, link.to}];
    EXPECT_LE(load, link.lanes * packing.rate.steps) << name;
    loads.erase({link.from, link.to});
  }
  EXPECT_TRUE(loads.empty()) << name << ": a path has an edge that is no link";
}

// The flow, its dual and the rounded paths agree: the paths are hardly slower than the bound, which
// holds whatever the linear program did.
TEST(PathPacking, NearTheBoundOfTheLengths) {
  if (const char* missing = searched::missing_flow_solver()) GTEST_SKIP() << missing;
  const std::uint64_t seeds = whole() ? 2000 : small_sample() ? 10 : 60;
  std::uint64_t rounded = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const RandomCase one = random_case(seed);
    const PackingGraph graph = searched::packing_graph(*or_throw(topology::parse(one.spec)));
    const auto flow = or_throw(searched::find_exchange_flow(graph));
    searched::LinkLengths lengths = {flow.lengths.by_link};
    searched::measure(graph, lengths);
    const double bound =
        static_cast<double>(lengths.distances) / static_cast<double>(lengths.lanes);
    const double time = static_cast<double>(flow.time) / searched::kFlowUnit;
    EXPECT_LE(time, bound * 1.005) << one.spec;
    EXPECT_GE(time, bound * 0.99999) << one.spec;
    const searched::PathPacking packing = searched::pack_paths(graph, flow);
    check_paths(graph, packing, one.spec);
    const double taken = static_cast<double>(packing.rate.steps) / packing.rate.blocks;
    EXPECT_LE(taken, bound * 1.02) << one.spec;
    EXPECT_GE(taken, bound * 0.99999) << one.spec;
    rounded += packing.rate.blocks > 1 ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(rounded, 0u) << "no pair has several paths";
}

// The same on every machine, whatever its floating point and its Clp: only the rounded flow counts.
TEST(PathPacking, TheSameEverywhere) {
  if (const char* missing = searched::missing_flow_solver()) GTEST_SKIP() << missing;
  const std::map<std::string, std::uint64_t> digests = {{"torus-4x4", 8722193964356003840u},
                                                        {"cube-mesh-8", 17724112607330605796u},
                                                        {"boxes-2x8", 3560138575371626880u},
                                                        {"random-24-4", 991328603207459315u}};
  std::size_t compared = 0;
  for (const NamedGraph& graph : graph_list()) {
    if (digests.count(graph.name) == 0) continue;
    const PackingGraph links = searched::packing_graph(*or_throw(topology::parse(graph.spec)));
    const searched::PathPacking packing =
        searched::pack_paths(links, or_throw(searched::find_exchange_flow(links)));
    std::uint64_t digest = 0;
    for (const searched::PackedPath& path : packing.paths) {
      for (const std::uint32_t node : path.nodes) digest = digest_u64(digest, node);
    }
    EXPECT_EQ(digest, digests.at(graph.name)) << graph.name;
    ++compared;
  }
  EXPECT_EQ(compared, digests.size());
}

// A flow that is wrong still gives paths that hold.
TEST(PathPacking, HoldsWhateverTheFlowIs) {
  if (const char* missing = searched::missing_flow_solver()) GTEST_SKIP() << missing;
  const RandomCase one = random_case(77);
  const PackingGraph graph = searched::packing_graph(*or_throw(topology::parse(one.spec)));
  searched::ExchangeFlow flow = or_throw(searched::find_exchange_flow(graph));
  for (auto& of_origin : flow.by_origin) std::fill(of_origin.begin(), of_origin.end(), 0);
  check_paths(graph, searched::pack_paths(graph, flow), one.spec);
  for (auto& of_origin : flow.by_origin) of_origin[0] = searched::kFlowUnit * 7;
  check_paths(graph, searched::pack_paths(graph, flow), one.spec);
}

TEST(PackedTrees, RefusesInOneLine) {
  const auto refused = [](Collective collective, const std::string& spec) {
    return message_of(search(collective, *or_throw(topology::parse(spec))));
  };
  EXPECT_EQ(refused(Collective::kAllgather, "mesh:5x13"),
            "packed-trees on mesh:5x13: expected at most 64 nodes, and at most 16 links per node");
  EXPECT_EQ(
      refused(Collective::kBroadcast, "mesh:1x257"),
      "packed-trees on mesh:1x257: expected at most 256 nodes, and at most 16 links per node");
  EXPECT_EQ(refused(Collective::kBroadcast, "complete:18"),
            "packed-trees on complete:18: expected at most 256 nodes, and at most 16 links per "
            "node");
  // The message from rank 0 to rank 1 does not take its only link.
  EXPECT_EQ(refused(Collective::kBroadcast,
                    "custom: name: \"around\" ranks: 3 link { from: 0 to: 1 } link { from: 1 to: 2 "
                    "} link { from: 0 to: 2 } route { node: [0, 2, 1] } route { node: [2, 0, 1] }"),
            "packed-trees on around: no links lead from rank 0 to rank 1");
}

}  // namespace
}  // namespace espalier::graphs

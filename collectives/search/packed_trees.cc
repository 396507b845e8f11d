// `packed-trees`: broadcast, reduce, allgather, reduce-scatter and allreduce on any graph, by
// spanning trees that together use its links as well as any schedule can (tree_packing.h). Nodes
// exchange messages with neighbours only; routers run programs.
//
// Every root has k trees. A round takes T steps, in which each link carries at most T blocks per
// lane: a round sends one block over each tree. T / k is the maximum of |roots in U| / B(U) over
// all cuts U without some rank, B(U) the lanes that leave U: no schedule has a smaller one.
//
//  * Broadcast: one root, T = 1, and k is the least maximum flow from the root to a rank.
//  * Reduce: the broadcast of the reversed graph, and every tree is run backwards.
//  * Allgather: every rank is a root. If k is above the limit kMaxTrees / p, the best T / k with
//    fewer trees is taken.
//  * Reduce-scatter: the allgather of the reversed graph, backwards.
//  * Allreduce: the message has p k blocks per round; each is reduced to a root by one of the trees
//    of the reduce-scatter, and sent on by one of the allgather's. T is the sum of both.
//
// A hop takes the first step, modulo T, in which its link has a lane left after its block came
// (lower/hops.h: no queue). So N blocks take d + T ceil(N / k) steps, where d < T * (depth of the
// trees). Cost: steps * (alpha + beta * m / N), and m / (p N) for allreduce.
//
// Room. Combines that differ in what they wait for take actions with tables of their own. If the
// trees of a reduction do not fit into programs, deep trees are tried, then trees that no router
// combines in, then smaller windows, in which there are fewer waits. Then an allreduce takes the
// trees of root 0 (T = 2 for its k blocks), and the others take graphs with fewer lanes into each
// rank.
//
// Lanes beyond min(64, floor(255 / d)) of a link are not used, where d is the larger number of
// links of its two ends: nodes count no more messages (step_limits.h).

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "collectives/lower/hops.h"
#include "collectives/search/fitting.h"
#include "collectives/search/packing/tree_packing.h"
#include "collectives/search/searches.h"
#include "collectives/search/streams.h"
#include "collectives/search/tree_hops.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::searched {
namespace {

// Maximum number of trees over all roots, if there are several.
constexpr std::int64_t kMaxTrees = 1024;

std::vector<std::uint32_t> all_ranks(const PackingGraph& graph) {
  std::vector<std::uint32_t> ranks(graph.ranks);
  for (std::uint32_t rank = 0; rank < graph.ranks; ++rank) ranks[rank] = rank;
  return ranks;
}

// The trees of a collective: out of the roots, and into them. The message has one block per round
// for each tree of `out` or `in`, or, if both are there, for each pair of them.
struct PackedForest {
  TreePacking out, in;
};

// `k`: trees per root; 0: as many as the best rate has.
Result<TreePacking> best_trees(const PackingGraph& graph, const std::vector<std::uint32_t>& roots,
                               std::int64_t k, const TreeShape& shape) {
  auto rate = best_rate(graph, roots);
  if (!rate) return fail(rate.error());
  PackingRate wanted = *rate;
  if (k > 0) {
    wanted = {(k * rate->steps + rate->blocks - 1) / rate->blocks, k};
  } else if (roots.size() > 1) {
    wanted = rate_of(*rate, std::max<std::int64_t>(1, kMaxTrees / as_int(roots.size())));
  }
  return pack_trees(graph, roots, wanted, shape);
}

// `into`: the links that trees into roots may use; `shape` is theirs.
Result<PackedForest> find_forest(Collective collective, const PackingGraph& graph,
                                 const PackingGraph& into, const std::vector<std::uint32_t>& roots,
                                 const TreeShape& shape) {
  PackedForest forest;
  if (collective != Collective::kReduce && collective != Collective::kReduceScatter) {
    auto out = best_trees(graph, roots, 0, {});
    if (!out) return fail(out.error());
    forest.out = *std::move(out);
  }
  if (collective != Collective::kBroadcast && collective != Collective::kAllgather) {
    const std::int64_t k = collective == Collective::kAllreduce ? forest.out.rate.blocks : 0;
    auto in = best_trees(reversed(into), roots, k, shape);
    if (!in) return fail(in.error());
    forest.in = *std::move(in);
  }
  return forest;
}

// The graph with at most `lanes` lanes into each rank, where it stays connected: nodes combine one
// block per lane and step, and fewer combines take less room in a program.
PackingGraph thinned(PackingGraph graph, std::int64_t lanes) {
  std::vector<std::int64_t> into(graph.nodes, 0);
  for (const PackingLink& link : graph.links) into[link.to] += link.lanes;
  std::vector<bool> needed(graph.links.size(), false);
  for (;;) {
    std::size_t busiest = graph.links.size();
    const auto load = [&](std::size_t link) {
      const PackingLink& one = graph.links[link];
      return std::tuple(into[one.to], one.lanes, into[one.from]);
    };
    for (std::size_t link = 0; link < graph.links.size(); ++link) {
      const PackingLink& one = graph.links[link];
      const bool may = one.to < graph.ranks && one.lanes > 0 && into[one.to] > lanes;
      if (!may || needed[link]) continue;
      if (busiest == graph.links.size() || load(link) > load(busiest)) busiest = link;
    }
    if (busiest == graph.links.size()) break;
    PackingGraph less = graph;
    const PackingLink one = graph.links[busiest];
    for (PackingLink& link : less.links) {
      const bool back = link.from == one.to && link.to == one.from;
      if (back || (link.from == one.from && link.to == one.to)) --link.lanes;
    }
    const std::vector<std::uint32_t> all = all_ranks(graph);
    needed[busiest] = !best_rate(less, all).has_value();
    if (needed[busiest]) continue;
    graph = std::move(less);
    --into[one.to];
    --into[one.from];
  }
  std::erase_if(graph.links, [](const PackingLink& link) { return link.lanes <= 0; });
  return graph;
}

// The hops of a collective.
class ForestHops {
 public:
  ForestHops(Collective collective, const PackingGraph& graph, const PackedForest& forest)
      : graph_(graph),
        back_(reversed(graph)),
        forest_(forest),
        per_rank_(counts_per_rank(collective)),
        allreduce_(collective == Collective::kAllreduce) {
    const TreePacking& some = forest.out.trees.empty() ? forest.in : forest.out;
    blocks_ = static_cast<std::int32_t>(per_rank_ ? some.rate.blocks : as_int(some.trees.size()));
    period_ = least_period();
  }

  // Trees into roots run backwards in the steps of a plan for the reversed graph.
  [[nodiscard]] lower::HopGraph hops(const lower::Waits& waits) const {
    TreeHops backwards(back_, blocks_);
    std::vector<std::vector<std::int32_t>> first;
    for (const PackedTree& tree : forest_.in.trees) {
      first.push_back(
          backwards.broadcast(tree, block_of(tree), segment_of(tree), {-1, segment_of(tree)}));
    }
    const lower::Plan plan = lower::find_steps(backwards.hops(), waits, period_);
    TreeHops hops(graph_, blocks_);
    std::vector<lower::TaskInput> sums;
    for (std::size_t tree = 0; tree < first.size(); ++tree) {
      const PackedTree& one = forest_.in.trees[tree];
      std::vector<std::vector<std::int32_t>> steps;
      for (std::size_t edge = 0; edge < one.edges.size(); ++edge) {
        std::vector<std::int32_t>& back = steps.emplace_back();
        for (std::size_t hop = 0; hop + 1 < one.edges[edge].size(); ++hop) {
          const auto number = as_index(first[tree][edge]) + hop;
          back.push_back(plan.length - 1 - plan.steps[number]);
        }
      }
      sums.push_back(hops.reduce(one, block_of(one), segment_of(one), steps));
    }
    for (const PackedTree& tree : forest_.out.trees) {
      const std::int32_t segment = segment_of(tree);
      if (per_rank_) (void)hops.copy(tree.root, block_of(tree), segment);
      const auto held = allreduce_ ? sums[as_index(block_of(tree))] : lower::TaskInput{-1, segment};
      (void)hops.broadcast(tree, block_of(tree), segment, held);
    }
    if (allreduce_) hops.keep_in_place();
    return hops.hops();
  }

 private:
  // The steps that the busiest link needs for a round of all trees.
  [[nodiscard]] std::int32_t least_period() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> loads;
    for (const PackedTree& tree : forest_.out.trees) {
      for (const PackedEdge& edge : tree.edges) {
        for (std::size_t hop = 1; hop < edge.size(); ++hop) ++loads[{edge[hop - 1], edge[hop]}];
      }
    }
    for (const PackedTree& tree : forest_.in.trees) {
      for (const PackedEdge& edge : tree.edges) {
        for (std::size_t hop = 1; hop < edge.size(); ++hop) ++loads[{edge[hop], edge[hop - 1]}];
      }
    }
    std::int64_t period = 1;
    for (const PackingLink& link : graph_.links) {
      period = std::max(period, (loads[{link.from, link.to}] + link.lanes - 1) / link.lanes);
    }
    return static_cast<std::int32_t>(period);
  }

  [[nodiscard]] std::int32_t segment_of(const PackedTree& tree) const {
    return per_rank_ ? as_int(tree.root) : 0;
  }
  [[nodiscard]] std::int32_t block_of(const PackedTree& tree) const {
    if (!allreduce_) return as_int(tree.number);
    const std::int64_t before = tree.root == forest_.out.trees.front().root ? 0 : tree.root;
    return static_cast<std::int32_t>(before * forest_.out.rate.blocks + tree.number);
  }

  const PackingGraph& graph_;
  PackingGraph back_;
  const PackedForest& forest_;
  bool per_rank_, allreduce_;
  std::int32_t blocks_ = 1;  // per round
  std::int32_t period_ = 1;
};

// Writes the forest that fits into programs with the largest window; among equals, the first.
Result<Programs> write_forests(const topology::Topology& topology,
                               const CollectiveParameters& parameters, const Outline& outline,
                               const PackingGraph& graph,
                               const std::vector<PackedForest>& forests) {
  std::vector<HopMaker> makers;
  for (const PackedForest& forest : forests) {
    makers.emplace_back([found = ForestHops(outline.collective, graph, forest)](
                            const lower::Waits& waits) { return found.hops(waits); });
  }
  return write_what_fits(topology, parameters, outline, graph, makers);
}

Result<Programs> pack(Collective collective, const topology::Topology& topology,
                      const CollectiveParameters& parameters) {
  if (auto known = check_parameters(topology, parameters); !known) return fail(known.error());
  const std::string who = "packed-trees on " + topology.title() + ": ";
  if (!(has_root(collective) ? can_pack_one_root(topology) : can_pack_all_roots(topology))) {
    return fail(who + "expected at most " +
                counted(has_root(collective) ? kMaxPackedNodes : kMaxPackedRoots, "node") +
                ", and at most " + std::to_string(kMaxPackedLinks) + " links per node");
  }
  if (topology.ranks() == 1 && topology.nodes() > 1) {
    return fail(who + "expected at least two ranks, or no router");
  }
  const bool routers = topology.nodes() > topology.ranks();
  const Outline outline{.collective = collective,
                        .algorithm = "packed-trees",
                        .needs_commutative = collective == Collective::kReduce ||
                                             collective == Collective::kReduceScatter ||
                                             collective == Collective::kAllreduce,
                        .nodes = routers ? topology.nodes() : 0,
                        .port_model = PortModel::kMultiport,
                        .contention = ContentionGuarantee::kSlot};
  if (topology.nodes() == 1) return write_alone(parameters, outline);
  const PackingGraph graph = packing_graph(topology);
  Result<Programs> programs = fail("");
  const auto attempt = [&](const PackingGraph& into, const std::vector<std::uint32_t>& roots) {
    std::vector<PackedForest> forests;
    for (const TreeShape& shape : {TreeShape{}, TreeShape{true, false}, TreeShape{true, true}}) {
      const bool differs = !shape.only_ranks || routers;
      if (shape.deep && !(outline.needs_commutative && differs)) break;
      auto forest = find_forest(collective, graph, into, roots, shape);
      if (!forest && shape.only_ranks) break;
      if (!forest) return Result<Programs>(fail(forest.error()));
      forests.push_back(*std::move(forest));
    }
    return write_forests(topology, parameters, outline, graph, forests);
  };
  const std::vector<std::uint32_t> one_root = {parameters.root};
  programs = attempt(graph, has_root(collective) ? one_root : all_ranks(graph));
  if (programs || !outline.needs_commutative) {
    // No smaller programs are known for other collectives.
  } else if (collective == Collective::kAllreduce) {
    programs = attempt(graph, {0});
  } else {
    for (const std::int64_t lanes : {6, 5, 4, 3, 2}) {
      programs = attempt(thinned(graph, lanes), has_root(collective) ? one_root : all_ranks(graph));
      if (programs) break;
    }
  }
  if (programs) return programs;
  return fail(who + programs.error().message);
}

}  // namespace

bool can_pack_one_root(const topology::Topology& topology) {
  if (topology.nodes() > kMaxPackedNodes) return false;
  std::vector<std::uint32_t> links(topology.nodes());
  for (const topology::Link& link : topology.links()) {
    if (++links[link.from] > kMaxPackedLinks) return false;
  }
  return true;
}

bool can_pack_all_roots(const topology::Topology& topology) {
  return topology.nodes() <= kMaxPackedRoots && can_pack_one_root(topology);
}

namespace {

constexpr SearchedAlgorithm packed_trees_row(Collective collective, const char* summary) {
  const bool one_root = collective == Collective::kBroadcast || collective == Collective::kReduce;
  return row(
      "packed-trees", collective, pack, summary,
      {.needs_commutative =
           collective != Collective::kBroadcast && collective != Collective::kAllgather,
       .topologies = one_root ? "at most 256 nodes of 16 links" : "at most 64 nodes of 16 links",
       .applies = one_root ? can_pack_one_root : can_pack_all_roots,
       .own_links = true});
}

}  // namespace

const SearchedAlgorithm kPackedTreesRows[] = {
    packed_trees_row(
        Collective::kBroadcast,
        "spanning trees packed from the root, k = its least maximum flow: d+ceil(N/k) steps"),
    packed_trees_row(
        Collective::kReduce,
        "spanning trees packed into the root, k = its least maximum flow: d+ceil(N/k) steps"),
    packed_trees_row(Collective::kAllreduce,
                     "spanning trees packed into and out of every rank: d+T*ceil(N/(p*k)) steps"),
    packed_trees_row(
        Collective::kAllgather,
        "k spanning trees packed from every rank: d+T*ceil(N/k) steps, T/k the least of any"),
    packed_trees_row(
        Collective::kReduceScatter,
        "k spanning trees packed into every rank: d+T*ceil(N/k) steps, T/k the least of any"),
};

}  // namespace espalier::searched

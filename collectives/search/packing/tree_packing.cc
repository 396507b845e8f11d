// Tree packing at the best rate.
//
// * The rate. Let D have the links with lanes * steps each, and a vertex S with an arc of capacity
//   `blocks` to every root. Trees exist if and only if the flow from S to every rank is
//   |roots| * blocks ([Edmonds73], branchings with several roots). Otherwise the minimum cut has a
//   greater ratio |roots in U| / B(U), which becomes the new rate (Newton; [Zhao24], section 5,
//   searches the same rate by bisection).
// * Routers. A router with the same flow as the ranks is spanned like a rank, and removed again
//   where it is a leaf: it can replicate. Any other router is split off: pairs of a link into it
//   and a link out of it become one edge around it, as long as all flows stay. Some pair always can
//   if as many lanes enter as leave every node (Frank 1988, Jackson 1988).
// * The trees (Edmonds' proof, with multiplicities as by Berczi and Frank 2010, and [Zhao24]). A
//   class is m trees that are equal so far, with the nodes R. Let d(U) be the capacity into U, and
//   g(U) the number of trees that have no node in U. While d(U) >= g(U) for all U, all trees can be
//   completed. The edge (x, y), x in R, y not in R, may be added to mu of the m trees, where mu is
//   the least of its capacity, m, and the minimum of d(U) - g(U) over all U with y, without x, and
//   with a node of R. This minimum is the flow from x to y minus the trees of all other classes, in
//   D with a vertex per class: x has an arc of capacity m to the vertex of a class, which has arcs
//   to all nodes of the class. The other m - mu trees become a class of their own. An edge that may
//   not be added to a class never may: neither d(U) nor g(U) changes for the set U that forbids it.
//
// A shallow tree tries the arcs of the node that was reached first, a deep tree those of the last.

#include "collectives/search/packing/tree_packing.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "collectives/verify/bounds/flow.h"
#include "espalier/internal/base/assert.h"

namespace espalier::searched {
namespace {

constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max() / 4;

// An edge of the graph in which trees are packed: a link, or ways around routers that were split
// off.
struct PackingArc {
  std::uint32_t from = 0, to = 0;
  std::int64_t capacity = 0;
  // The ways of the edge, with their capacities; their sum is `capacity`.
  std::vector<std::pair<PackedEdge, std::int64_t>> ways;

  // Removes `wanted` of the capacity, and returns its ways.
  std::vector<std::pair<PackedEdge, std::int64_t>> take(std::int64_t wanted) {
    std::vector<std::pair<PackedEdge, std::int64_t>> taken;
    capacity -= wanted;
    while (wanted > 0) {
      auto& [way, left] = ways.back();
      const std::int64_t part = std::min(wanted, left);
      taken.emplace_back(way, part);
      wanted -= part;
      left -= part;
      if (left == 0) ways.pop_back();
    }
    return taken;
  }
};

class ArcGraph {
 public:
  ArcGraph(const PackingGraph& graph, std::int64_t steps) : nodes_(graph.nodes) {
    for (const PackingLink& link : graph.links) {
      add({link.from, link.to}, link.lanes * steps);
    }
  }

  [[nodiscard]] std::uint32_t nodes() const { return nodes_; }
  std::vector<PackingArc>& arcs() { return arcs_; }

  void add(const PackedEdge& way, std::int64_t capacity) {
    const auto [entry, fresh] = numbers_.try_emplace({way.front(), way.back()}, arcs_.size());
    if (fresh) arcs_.push_back({way.front(), way.back(), 0, {}});
    PackingArc& arc = arcs_[entry->second];
    arc.capacity += capacity;
    arc.ways.emplace_back(way, capacity);
  }

  // `amount` of the arcs `in` and `out` is replaced by one arc around the router between them.
  struct Detour {
    const PackingArc* in = nullptr;
    const PackingArc* out = nullptr;
    std::int64_t amount = 0;
  };
  // Returns the flow from a vertex before all roots to `to`.
  [[nodiscard]] std::int64_t flow_from(const std::vector<std::uint32_t>& roots, std::int64_t blocks,
                                       std::uint32_t to, const Detour& detour) {
    flow_.clear(nodes_ + 1);
    for (const PackingArc& arc : arcs_) {
      const bool less = &arc == detour.in || &arc == detour.out;
      flow_.add_arc(arc.from, arc.to, arc.capacity - (less ? detour.amount : 0));
    }
    if (detour.amount > 0) flow_.add_arc(detour.in->from, detour.out->to, detour.amount);
    for (const std::uint32_t root : roots) flow_.add_arc(nodes_, root, blocks);
    return flow_.max_flow(nodes_, to, blocks * static_cast<std::int64_t>(roots.size()));
  }

 private:
  std::uint32_t nodes_;
  std::vector<PackingArc> arcs_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> numbers_;
  verify::FlowNetwork flow_;
};

// Trees that are equal so far.
struct TreeClass {
  std::uint32_t root = 0;
  std::int64_t trees = 0;
  std::vector<std::uint32_t> nodes;  // in the order in which they were reached
  std::vector<bool> reached;         // by node
  // For each of `nodes` except the root, and for each tree, the edge into it.
  std::vector<std::vector<PackedEdge>> edges;
};

class TreePacker {
 public:
  TreePacker(const PackingGraph& graph, const std::vector<std::uint32_t>& roots,
             const PackingRate& rate, const TreeShape& shape)
      : graph_(graph), roots_(roots), rate_(rate), shape_(shape), arcs_(graph, rate.steps) {}

  // Returns whether the rate is possible; the trees are then in `packing`.
  bool pack(TreePacking& packing) {
    find_terminals();
    for (std::uint32_t router = graph_.ranks; router < graph_.nodes; ++router) {
      if (!terminal_[router]) split_off(router);
    }
    for (std::uint32_t node = 0; node < graph_.nodes; ++node) {
      if (terminal_[node] && !reached(node, {})) return false;
    }
    for (const std::uint32_t root : roots_) {
      TreeClass one{root, rate_.blocks, {root}, std::vector<bool>(graph_.nodes, false), {}};
      one.reached[root] = true;
      classes_.push_back(std::move(one));
    }
    packing.rate = rate_;
    while (!classes_.empty()) {
      TreeClass one = std::move(classes_.front());
      classes_.pop_front();
      complete(one);
      keep(one, packing.trees);
    }
    std::stable_sort(packing.trees.begin(), packing.trees.end(),
                     [](const auto& a, const auto& b) { return a.root < b.root; });
    for (std::size_t i = 0; i < packing.trees.size(); ++i) {
      const bool first = i == 0 || packing.trees[i - 1].root != packing.trees[i].root;
      packing.trees[i].number = first ? 0 : packing.trees[i - 1].number + 1;
    }
    return true;
  }

 private:
  [[nodiscard]] bool reached(std::uint32_t node, const ArcGraph::Detour& detour) {
    return arcs_.flow_from(roots_, rate_.blocks, node, detour) ==
           rate_.blocks * static_cast<std::int64_t>(roots_.size());
  }

  // Ranks, and routers that all trees can reach.
  void find_terminals() {
    terminal_.assign(graph_.nodes, true);
    for (std::uint32_t router = graph_.ranks; router < graph_.nodes; ++router) {
      terminal_[router] = !shape_.only_ranks && reached(router, {});
    }
  }

  void split_off(std::uint32_t router) {
    const auto at = [&](bool into) {
      std::vector<std::size_t> found;
      for (std::size_t arc = 0; arc < arcs_.arcs().size(); ++arc) {
        const PackingArc& one = arcs_.arcs()[arc];
        if ((into ? one.to : one.from) == router) found.push_back(arc);
      }
      return found;
    };
    const std::vector<std::size_t> into = at(true), out = at(false);
    // A pair of one neighbour carries nothing around the router, so other pairs come first.
    for (const bool same : {false, true}) {
      for (const std::size_t in : into) {
        for (const std::size_t on : out) {
          if ((arcs_.arcs()[in].from == arcs_.arcs()[on].to) == same) split_pair(in, on);
        }
      }
    }
    for (const auto& arcs : {into, out}) {
      for (const std::size_t arc : arcs) (void)arcs_.arcs()[arc].take(arcs_.arcs()[arc].capacity);
    }
  }

  // Leads as much as possible of two arcs around the router between them.
  void split_pair(std::size_t in, std::size_t on) {
    std::int64_t fits = 0;
    std::int64_t most = std::min(arcs_.arcs()[in].capacity, arcs_.arcs()[on].capacity);
    while (fits < most) {
      const std::int64_t amount = most - (most - fits) / 2;
      const ArcGraph::Detour detour{&arcs_.arcs()[in], &arcs_.arcs()[on], amount};
      bool all = true;
      for (std::uint32_t node = 0; node < graph_.nodes && all; ++node) {
        all = !terminal_[node] || reached(node, detour);
      }
      (all ? fits : most) = all ? amount : amount - 1;
    }
    if (fits == 0) return;
    auto first = arcs_.arcs()[in].take(fits), second = arcs_.arcs()[on].take(fits);
    while (!first.empty()) {
      const std::int64_t part = std::min(first.back().second, second.back().second);
      PackedEdge way = first.back().first;
      const PackedEdge& rest = second.back().first;
      way.insert(way.end(), rest.begin() + 1, rest.end());
      if (way.front() != way.back()) arcs_.add(way, part);
      for (auto* ways : {&first, &second}) {
        ways->back().second -= part;
        if (ways->back().second == 0) ways->pop_back();
      }
    }
  }

  // The number of trees of the class to which the arc can be added.
  [[nodiscard]] std::int64_t trees_with(const TreeClass& one, const PackingArc& arc) {
    flow_.clear(graph_.nodes + static_cast<std::uint32_t>(classes_.size()));
    for (const PackingArc& other : arcs_.arcs()) {
      if (other.capacity > 0) flow_.add_arc(other.from, other.to, other.capacity);
    }
    std::int64_t others = 0;
    std::uint32_t vertex = graph_.nodes;
    for (const TreeClass& other : classes_) {
      others += other.trees;
      if (other.nodes.size() == 1) {
        flow_.add_arc(arc.from, other.root, other.trees);
        continue;
      }
      flow_.add_arc(arc.from, vertex, other.trees);
      for (const std::uint32_t node : other.nodes) flow_.add_arc(vertex, node, kEndless);
      ++vertex;
    }
    const std::int64_t most = std::min(arc.capacity, one.trees);
    return std::min(most, flow_.max_flow(arc.from, arc.to, others + most) - others);
  }

  void complete(TreeClass& one) {
    std::size_t terminals = 0;
    for (const bool is_terminal : terminal_) terminals += is_terminal ? 1 : 0;
    std::vector<bool> refused(arcs_.arcs().size(), false);
    std::vector<std::vector<std::size_t>> out(graph_.nodes);
    for (std::size_t arc = 0; arc < arcs_.arcs().size(); ++arc) {
      out[arcs_.arcs()[arc].from].push_back(arc);
    }
    std::vector<std::uint32_t> growing = one.nodes;  // nodes that may have an arc left to try
    std::size_t first = 0;                           // those before it have none
    while (one.nodes.size() < terminals) {
      ESPALIER_ASSERT(first < growing.size());
      const std::uint32_t from = shape_.deep ? growing.back() : growing[first];
      bool added = false;
      for (const std::size_t number : out[from]) {
        PackingArc& arc = arcs_.arcs()[number];
        if (arc.capacity == 0 || refused[number] || one.reached[arc.to]) continue;
        const std::int64_t trees = trees_with(one, arc);
        refused[number] = trees == 0;
        if (trees == 0) continue;
        add(one, arc, trees);
        growing.push_back(arc.to);
        added = true;
        break;
      }
      if (added) continue;
      if (shape_.deep) {
        growing.pop_back();
      } else {
        ++first;
      }
    }
  }

  void add(TreeClass& one, PackingArc& arc, std::int64_t trees) {
    if (trees < one.trees) {
      TreeClass rest = one;
      rest.trees = one.trees - trees;
      for (auto& edges : rest.edges) {
        edges.erase(edges.begin(), edges.begin() + static_cast<std::ptrdiff_t>(trees));
      }
      for (auto& edges : one.edges) edges.resize(static_cast<std::size_t>(trees));
      one.trees = trees;
      classes_.push_front(std::move(rest));
    }
    one.nodes.push_back(arc.to);
    one.reached[arc.to] = true;
    std::vector<PackedEdge>& edges = one.edges.emplace_back();
    for (const auto& [way, count] : arc.take(trees)) {
      edges.insert(edges.end(), static_cast<std::size_t>(count), way);
    }
  }

  // Keeps the trees of a class, without the routers that are leaves.
  void keep(const TreeClass& one, std::vector<PackedTree>& trees) {
    std::vector<bool> needed(graph_.nodes, false);
    for (std::size_t i = one.nodes.size(); i-- > 1;) {
      const std::uint32_t node = one.nodes[i];
      if (node < graph_.ranks) needed[node] = true;
      if (needed[node]) needed[one.edges[i - 1].front().front()] = true;
    }
    for (std::size_t tree = 0; tree < static_cast<std::size_t>(one.trees); ++tree) {
      PackedTree& kept = trees.emplace_back();
      kept.root = one.root;
      for (std::size_t i = 1; i < one.nodes.size(); ++i) {
        if (needed[one.nodes[i]]) kept.edges.push_back(one.edges[i - 1][tree]);
      }
    }
  }

  const PackingGraph& graph_;
  const std::vector<std::uint32_t>& roots_;
  PackingRate rate_;
  TreeShape shape_;
  ArcGraph arcs_;
  std::vector<bool> terminal_;  // by node: every tree must reach it
  std::deque<TreeClass> classes_;
  verify::FlowNetwork flow_;
};

}  // namespace

Result<PackingRate> best_rate(const PackingGraph& graph, const std::vector<std::uint32_t>& roots) {
  verify::FlowNetwork flow;
  PackingRate rate{0, 1};
  std::uint32_t rank = 0;
  while (rank < graph.ranks) {
    flow.clear(graph.nodes + 1);
    for (const PackingLink& link : graph.links) {
      flow.add_arc(link.from, link.to, link.lanes * rate.steps);
    }
    for (const std::uint32_t root : roots) flow.add_arc(graph.nodes, root, rate.blocks);
    const std::int64_t all = rate.blocks * static_cast<std::int64_t>(roots.size());
    if (flow.max_flow(graph.nodes, rank, all) == all) {
      ++rank;
      continue;
    }
    std::int64_t blocks = 0, lanes = 0;
    std::uint32_t unreached = roots.front();
    for (const std::uint32_t root : roots) {
      if (!flow.on_source_side(root)) continue;
      ++blocks;
      unreached = root;
    }
    for (const PackingLink& link : graph.links) {
      const bool leaves = flow.on_source_side(link.from) && !flow.on_source_side(link.to);
      if (leaves) lanes += link.lanes;
    }
    if (lanes == 0) {
      return fail("no links lead from rank " + std::to_string(unreached) + " to rank " +
                  std::to_string(rank));
    }
    const std::int64_t by = std::gcd(blocks, lanes);
    rate = {blocks / by, lanes / by};
  }
  if (rate.steps == 0) rate = {1, 1};  // the only rank
  return rate;
}

PackingRate rate_of(const PackingRate& exact, std::int64_t max_blocks) {
  if (exact.blocks <= max_blocks) return exact;
  PackingRate best{exact.steps, 1};
  for (std::int64_t blocks = 1; blocks <= max_blocks; ++blocks) {
    const std::int64_t steps = (blocks * exact.steps + exact.blocks - 1) / exact.blocks;
    if (steps * best.blocks < best.steps * blocks) best = {steps, blocks};
  }
  return best;
}

Result<TreePacking> pack_trees(const PackingGraph& graph, const std::vector<std::uint32_t>& roots,
                               const PackingRate& rate, const TreeShape& shape) {
  for (PackingRate slower = rate; slower.steps <= 2 * rate.steps + 1; ++slower.steps) {
    TreePacking packing;
    if (TreePacker(graph, roots, slower, shape).pack(packing)) return packing;
  }
  return fail("the routers' links cannot be paired so that trees reach all ranks");
}

}  // namespace espalier::searched

#pragma once
// Packs spanning trees into a graph so that all of them together use its links as well as any
// schedule can. Host only.

#include <cstdint>
#include <vector>

#include "collectives/search/packing/packing_graph.h"
#include "espalier/base/result.h"

namespace espalier::searched {

// Every root sends `blocks` blocks to all ranks in `steps` steps.
struct PackingRate {
  std::int64_t steps = 1, blocks = 1;
};

// One edge of a tree: the nodes from a node that the tree has reached to a new one. Nodes between
// the ends are routers, which pass the block on.
using PackedEdge = std::vector<std::uint32_t>;

// A tree that carries one block of its root in every round.
struct PackedTree {
  std::uint32_t root = 0;
  std::uint32_t number = 0;       // among the trees of this root
  std::vector<PackedEdge> edges;  // the edge into a node comes before those out of it
};

struct TreeShape {
  // The last node that was reached grows next, not the first: few nodes have several children.
  bool deep = false;
  // All routers are split off: none has several children.
  bool only_ranks = false;
};

struct TreePacking {
  PackingRate rate;
  std::vector<PackedTree> trees;  // rate.blocks per root, by root and number
};

// Returns the rate that no schedule exceeds: steps / blocks is the maximum of |roots in U| / B(U),
// over all sets U of nodes without some rank, where B(U) is the lanes that leave U. A fraction in
// lowest terms. Error: a root cannot reach a rank.
[[nodiscard]] Result<PackingRate> best_rate(const PackingGraph& graph,
                                            const std::vector<std::uint32_t>& roots);

// Returns the best rate with at most `max_blocks` blocks: the exact one, or the nearest below it.
[[nodiscard]] PackingRate rate_of(const PackingRate& exact, std::int64_t max_blocks);

// Packs `rate.blocks` trees of each root, so that each link is in at most lanes * rate.steps edges.
// If both directions of every link have the same lanes, these trees exist for best_rate() and every
// slower rate; otherwise a router that must be split off may prevent it, and more steps are tried.
// The same arguments give the same trees. Error: no packing was found.
[[nodiscard]] Result<TreePacking> pack_trees(const PackingGraph& graph,
                                             const std::vector<std::uint32_t>& roots,
                                             const PackingRate& rate, const TreeShape& shape);

}  // namespace espalier::searched

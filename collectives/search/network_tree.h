#pragma once
// A breadth-first tree of a topology's nodes, along which routers combine and replicate. Host only.

#include <cstdint>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/topology/topology.h"

namespace espalier::searched {

struct NetworkTree {
  // A node that is not the root and has no rank below it is not in the tree: `ranks` is 0.
  struct Node {
    std::uint32_t parent = 0;  // the root's parent is the root
    std::uint32_t depth = 0;   // links to the root
    // The ranks at and below the node: their number, the lowest and the highest.
    std::uint32_t ranks = 0, first = 0, last = 0;
    std::vector<std::uint32_t> children;  // by their first ranks
  };
  std::uint32_t root = 0;
  std::uint32_t depth = 0;       // of the deepest rank
  bool keeps_order = true;       // the ranks at and below each node are consecutive
  std::vector<Node> nodes = {};  // all nodes of the topology
};

// Returns the tree over the links that have both directions, with the fewest links from `root` to
// each rank. If several parents are possible, a node has the lowest. Error: a rank cannot be
// reached.
[[nodiscard]] Result<NetworkTree> tree_from(const topology::Topology& topology, std::uint32_t root);

// Returns the tree from the centre: the node whose furthest rank is nearest. If there are several
// centres, it prefers a centre whose tree keeps the order of ranks, then a router, then the lowest.
// Errors: as tree_from(); a topology of more nodes and links than a search from each node is made
// for.
[[nodiscard]] Result<NetworkTree> tree_from_centre(const topology::Topology& topology);

}  // namespace espalier::searched

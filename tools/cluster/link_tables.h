#pragma once
// The links that a hop-by-hop run gives its nodes: those of the topology, regardless of their
// programs. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/topology/topology.h"

namespace espalier::tools {

// The links of one node, by neighbour: lanes there and back. One of the two may be 0.
struct NodeLink {
  std::uint32_t peer = 0, out = 0, in = 0;
  // The interface by which each lane leaves, "eth0", or with the MTU that it must have,
  // "eth0/9000"; empty: the fabric chooses.
  std::vector<std::string> interfaces = {};
  std::vector<std::string> cables = {};  // the same, for messages: "eth0 of host1"; or empty
};
using LinkTable = std::vector<NodeLink>;

// The links of the nodes 0 .. nodes-1, which run, among each other; neighbours ascending.
[[nodiscard]] std::vector<LinkTable> link_tables(const topology::Topology& topology,
                                                 std::uint32_t nodes);

// Endpoints of a node: one per lane, counted in the direction that has more.
[[nodiscard]] std::uint64_t endpoints(const LinkTable& table);

// As espalier-node's --links takes it.
[[nodiscard]] std::string to_text(const LinkTable& table);

}  // namespace espalier::tools

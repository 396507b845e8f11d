#pragma once
// The links of a topology as searches use them that take any graph. Host only.

#include <cstdint>
#include <vector>

#include "espalier/topology/topology.h"

namespace espalier::searched {

// A directed link with its lanes.
struct PackingLink {
  std::uint32_t from = 0, to = 0;
  std::int64_t lanes = 1;
};

// Nodes 0 .. ranks-1 are ranks; the others are routers, which trees and paths may pass.
struct PackingGraph {
  std::uint32_t ranks = 0, nodes = 0;
  std::vector<PackingLink> links;
};

// Returns the links of the topology that messages may use, by their ends. A link has as many lanes
// as nodes count messages for (step_limits.h). If there are routers, peers must be neighbours in
// both directions, because routers have programs: one-way links are left out.
[[nodiscard]] PackingGraph packing_graph(const topology::Topology& topology);

// Whether every link has one back. On one-way links the verifier proves no bound by hops.
[[nodiscard]] bool is_two_way(const PackingGraph& graph);

// Every link turned round.
[[nodiscard]] PackingGraph reversed(PackingGraph graph);

}  // namespace espalier::searched

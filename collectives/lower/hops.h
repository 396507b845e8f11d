#pragma once
// Maps a schedule's tasks to the links of a topology and assigns steps to them. Host only.

#include <cstdint>
#include <vector>

#include "collectives/lower/graph.h"
#include "espalier/topology/topology.h"

namespace espalier::lower {

// A crossing of one link, or an operation (from = to).
struct Hop {
  std::uint32_t from = 0, to = 0;
  std::int32_t task = 0;
  std::int32_t a = -1, b = -1;  // hops and operations whose results it needs
  std::int32_t port = -1;       // the resource that it occupies for a step; none for an operation
  std::int32_t step = -1;       // the step that it must have, after the hops that it needs; -1: any
};

// A resource with a number of lanes per step: a link or, if a node sends once per step, the node.
struct Port {
  std::uint32_t from = 0, to = 0;  // to = from: a node
  std::int32_t lanes = 1;
  std::int32_t load = 0;  // hops of all blocks of the graph

  [[nodiscard]] std::int32_t steps() const { return (load + lanes - 1) / lanes; }
};

// `then` runs at least `steps` steps after `first`, or with `window` at least one window after it.
struct Order {
  std::int32_t first = 0, then = 0;  // hops
  bool window = false;
  std::int32_t steps = 0;
};

struct HopGraph {
  std::int32_t blocks = 1;
  std::vector<Task> tasks;
  std::vector<std::int32_t> first = {};  // by task: its first hop; the others follow consecutively
  std::vector<Hop> all = {};             // each after the hops that it needs
  std::vector<Order> orders = {};        // keep the schedule correct in place
  std::vector<Port> ports = {};
  std::vector<Port> links = {};  // loads of links, for every port model

  // The last hop of a task.
  [[nodiscard]] std::int32_t last_of(std::int32_t task) const {
    const auto next = static_cast<std::size_t>(task) + 1;
    return (next < first.size() ? first[next] : static_cast<std::int32_t>(all.size())) - 1;
  }
};

// Routes each message over every link of topology.route(). Errors: a route does not follow links,
// or there are more hops than kMaxHops.
[[nodiscard]] Result<HopGraph> find_hops(const topology::Topology& topology, Graph graph,
                                         PortModel ports);

inline constexpr std::size_t kMaxHops = std::size_t{1} << 22;

// How long a block may stay in a node before it is forwarded: up to `near` steps, or at least `far`
// steps. (Each number of steps below the window takes an action of its own; all longer stays share
// one.)
struct Waits {
  std::int32_t near = 0, far = 1;  // far: the window
};

// Steps of the first round of blocks. Round r has the same steps, `period` * r later.
struct Plan {
  std::int32_t period = 1;
  std::int32_t length = 0;          // of a round: 1 + its last step
  std::vector<std::int32_t> steps;  // by hop; for an operation the latest step of its operands
  const char* order = "";           // the ordering (below) that gave the plan
};

// Finds a modulo schedule (Rau 1994, iterative modulo scheduling; no hop depends on a later round,
// so no decision must ever be undone). Step by step, every port takes at most one ready hop per
// lane, modulo the period. The period is the maximum number of steps that the load of a port
// takes, which is always the least possible. Three orderings of the ready hops are tried: by step
// of the routed schedule, longest remaining path first, furthest message first. The result is the
// plan with the fewest steps; among equals, the first. Hops that must have a step must leave each
// port a lane for the others. `least_period`: the period is at least this.
[[nodiscard]] Plan find_steps(const HopGraph& hops, const Waits& waits,
                              std::int32_t least_period = 1);

}  // namespace espalier::lower

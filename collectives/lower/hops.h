#pragma once
// A schedule's tasks on the links of a topology, and steps for them. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/lower/graph.h"
#include "espalier/topology/topology.h"

namespace espalier::lower {

// One crossing of a link, or an operation (from = to).
struct Hop {
  std::uint32_t from = 0, to = 0;
  std::int32_t task = 0;
  std::int32_t a = -1, b = -1;  // hops and operations whose results it needs
  std::int32_t port = -1;       // what it takes for a step; an operation: none
};

// What carries so many blocks a step: a link, or where a node sends once a step, the node.
struct Port {
  std::uint32_t from = 0, to = 0;  // to = from: a node
  std::int32_t lanes = 1;
  std::int32_t load = 0;  // hops of all blocks of the graph

  [[nodiscard]] std::int32_t steps() const { return (load + lanes - 1) / lanes; }
};

// `then` is `first`'s step and this many more at the earliest; a window more, where it receives.
struct Order {
  std::int32_t first = 0, then = 0;  // hops
  bool window = false;
  std::int32_t steps = 0;
};

struct Hops {
  std::int32_t blocks = 1;
  std::vector<Task> tasks;
  std::vector<std::int32_t> first;  // by task: its first hop (of several: they follow one another)
  std::vector<Hop> all;             // each after those that it needs
  std::vector<Order> orders;        // that keep the schedule right in place
  std::vector<Port> ports;
  std::vector<Port> links;  // loads of links, whatever the ports

  // The hop that ends a task.
  [[nodiscard]] std::int32_t last_of(std::int32_t task) const {
    const auto next = static_cast<std::size_t>(task) + 1;
    return (next < first.size() ? first[next] : static_cast<std::int32_t>(all.size())) - 1;
  }
};

// Each message over every link of topology.route(). A line where that is not one of links, or there
// are more hops than kMostHops.
[[nodiscard]] std::string find_hops(const topology::Topology& topology, Graph graph,
                                    PortModel ports, Hops& hops);

inline constexpr std::size_t kMostHops = std::size_t{1} << 22;

// How long a block may stay in a node before it goes on: up to `near` steps, or `far` and more.
// (Each number of steps below the window takes an action of its own; those above share one.)
struct Waits {
  std::int32_t near = 0, far = 1;  // far: the window
};

// Steps of the first round of blocks; round r has them `period` r later.
struct Plan {
  std::int32_t period = 1;
  std::int32_t length = 0;          // of a round: the last of its steps, plus 1
  std::vector<std::int32_t> steps;  // by hop; of an operation the latest of what it needs
  const char* order = "";           // which of the orders below gave it
};

// A modulo schedule (Rau 1994, iterative modulo scheduling; nothing here waits for a later round,
// so that nothing need ever be undone): step by step every port takes as many of the hops that are
// ready as it has lanes, modulo the period, which is the most steps that a port's load takes. So
// the period is the least there is, always. Hops go by one of three orders: that of the direct
// steps, the longest way still to go first, the furthest message first; the one that needs the
// fewest steps is kept, the first of those.
[[nodiscard]] Plan find_steps(const Hops& hops, const Waits& waits);

}  // namespace espalier::lower

#pragma once
// Lowering: turns a schedule whose ranks send to any other rank into one in which every message
// crosses one link of the topology, with programs for its routers too. Host only.
//
// The routed schedule is read as a graph of messages and operations on a round of blocks (graph.h).
// Each message follows topology.route(), stored and forwarded, one step per hop. A modulo scheduler
// assigns a step to every hop, so that no link carries more than its lanes in any step (hops.h).
// Round r does the same `period` steps after round r - 1. The result is an ordinary schedule of one
// phase (timed.h). It serves every message size, and the verifier proves it like any other.

#include <cstdint>
#include <string>

#include "espalier/base/result.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/collectives/build/parameters.h"
#include "espalier/topology/topology.h"

namespace espalier::lower {

// The figures of one lower(). All defaults if `changed` is false.
struct Report {
  bool changed = false;                // false: every peer was a neighbour already
  std::int32_t period = 1;             // steps from one round to the next
  std::int32_t blocks = 1;             // per round
  std::int32_t routed_period = 1;      // of the routed schedule, for the same number of blocks
  std::int32_t first_steps = 0;        // of the first round
  std::size_t messages = 0, hops = 0;  // per round
  // The link whose load determines the period (to = from: the node that sends once per step).
  std::uint32_t from = 0, to = 0, lanes = 1;
  std::int32_t load = 0;
  std::string order;  // the scheduler's ordering that gave the fewest steps
};

// Whether every node of the topology has its program, and every peer is a neighbour.
[[nodiscard]] bool is_hop_by_hop(const topology::Topology& topology, const Programs& programs);

// Returns programs of all nodes of the topology that do the same as `routed`, for any number of
// blocks. If `routed` already uses only the topology's links, they are the same. `parameters`:
// those for which `routed` was generated; the new programs take its block table and window.
// `ports`: MULTIPORT or SINGLE_SEND. Errors: no repeating round of blocks, tables too small, too
// many nodes, an invalid route, or a hop-by-hop schedule for other ports.
[[nodiscard]] Result<Programs> lower(const topology::Topology& topology,
                                     const CollectiveParameters& parameters, PortModel ports,
                                     const Programs& routed, Report& report);

// Describes the result in one or more lines, each with its newline: the period, its cause, hops and
// steps.
[[nodiscard]] std::string describe(const topology::Topology& topology, const Report& report);

}  // namespace espalier::lower

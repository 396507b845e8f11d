#pragma once
// Lowering: a schedule whose ranks send to any other becomes one whose every message crosses one
// link of the topology, with programs for its routers as well. Host only.
//
// The direct schedule is read as a graph of messages and operations on a round of blocks
// (graph.h). Each message goes along topology.route(), stored and forwarded, one step a hop. A
// modulo scheduler gives every hop a step, so that no link carries more than its lanes in any step
// (hops.h), and round r does the same `period` steps after round r - 1. What comes out is an
// ordinary schedule of one phase (timed.h), which serves every message size and which the verifier
// proves as any other.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::lower {

struct Report {
  bool changed = false;                // false: every peer was a neighbour already
  std::int32_t period = 1;             // steps from a round to the next
  std::int32_t blocks = 1;             // of a round
  std::int32_t direct_period = 1;      // of the direct schedule, for as many blocks
  std::int32_t first_steps = 0;        // of the first round
  std::size_t messages = 0, hops = 0;  // of a round
  // The link (to = from: the node that sends once a step) whose load is the period.
  std::uint32_t from = 0, to = 0, lanes = 1;
  std::int32_t load = 0;
  std::string order;  // of the scheduler, that gave the fewest steps
};

// Whether every node of the topology has its program, and every peer is a neighbour.
[[nodiscard]] bool is_modelled(const topology::Topology& topology, const Programs& programs);

// Programs of all nodes of the topology that do what `direct` does, for any number of blocks; where
// that is modelled already, the same. `group`: what it was generated for; its block table and
// window are the new programs'. `ports`: MULTIPORT or SINGLE_SEND. A line that says why, where it
// cannot be done (no repeating round of blocks, tables too small, too many nodes, a route that is
// none, a modelled schedule of other ports), and no programs.
[[nodiscard]] std::string lower(const topology::Topology& topology, const Group& group,
                                PortModel ports, const Programs& direct, Programs& lowered,
                                Report& report);

// In a line or more, ends of lines included: the period, what makes it so, hops and steps.
[[nodiscard]] std::string describe(const topology::Topology& topology, const Report& report);

}  // namespace espalier::lower

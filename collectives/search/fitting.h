#pragma once
// Writes the programs of a search that takes any graph, with the largest window that they have room
// for. Host only.

#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/build/builder.h"
#include "collectives/lower/hops.h"
#include "collectives/search/packing/packing_graph.h"
#include "espalier/base/result.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::searched {

// Makes the hops of a schedule whose blocks stay in nodes as long as the waits allow.
using HopMaker = std::function<lower::HopGraph(const lower::Waits& waits)>;

// Writes the first schedule of `makers` that fits into programs. Each is tried with fewer and fewer
// different waits, which take fewer actions and possibly more steps; then all with a smaller
// window, down to 1. `least_period`, in steps: as in lower::find_steps(). Error: none fits, or the
// outline is wrong.
[[nodiscard]] Result<Programs> write_what_fits(const topology::Topology& topology,
                                               const CollectiveParameters& parameters,
                                               const Outline& outline, const PackingGraph& graph,
                                               const std::vector<HopMaker>& makers,
                                               std::int32_t least_period = 1);

}  // namespace espalier::searched

#pragma once
// Writes hops and their steps as programs. Internal to collectives/lower and the searches.

#include <cstdint>

#include "collectives/build/builder.h"
#include "collectives/lower/hops.h"
#include "espalier/base/result.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::lower {

// Writes the programs of all nodes for hops at the steps of a plan. The blocks of a round may be
// reordered in `hops`. `digest`: of the origin of the hops. `share_entries`: as in TimedSchedule.
// Error: a node's tables are too small.
[[nodiscard]] Result<Programs> write_hops(const topology::Topology& topology,
                                          const CollectiveParameters& parameters,
                                          const Outline& outline, const Count& bound,
                                          std::uint64_t digest, const Plan& plan, HopGraph& hops,
                                          bool share_entries = false);

}  // namespace espalier::lower

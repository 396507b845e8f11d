#pragma once
// Checks the fat tree of a leaf communication that has an explicit schedule. Host only.

#include <cstdint>

#include "espalier/base/result.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/topology/topology.h"

namespace espalier::searched {

// Errors: invalid parameters; not a fat tree; more than `max_leaves` leaves; a router with more
// than kMaxLinks links.
[[nodiscard]] Result<void> check_leaves(const topology::Topology& topology,
                                        const CollectiveParameters& parameters,
                                        const char* algorithm, std::uint32_t max_leaves);

}  // namespace espalier::searched

#pragma once
// A fractional tree of groups that are placed by an embedding. Host only.

#include "espalier/base/result.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::searched {

// Returns the programs of the embedding's collective, a broadcast or reduce, with the groups placed
// by `embedding`; errors as of Search (search.h). Also: an embedding without groups, or for
// another collective, topology, run length or root.
[[nodiscard]] Result<Programs> fractional_mesh(const topology::Topology& topology,
                                               const CollectiveParameters& parameters,
                                               const topology::Embedding& embedding);

}  // namespace espalier::searched

#pragma once
// A fractional tree of groups that are placed by an embedding. Host only.

#include <string>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/embedding.h"

namespace espalier::searched {

// Writes the programs with the groups placed by `embedding`; results as of Search (searched.h).
// Further errors: an embedding without groups, for another topology, or for another run length or
// root than the group's.
[[nodiscard]] std::string fractional_mesh(const topology::Topology& topology, const Group& group,
                                          const topology::Embedding& embedding, Programs& programs);

}  // namespace espalier::searched

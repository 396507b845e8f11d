#pragma once
// A fractional tree of groups that an embedding places. Host only.

#include <string>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/embedding.h"

namespace espalier::searched {

// The programs as Search returns them (searched.h), with the groups where the embedding has them.
// Also an error: an embedding without groups or for another topology, another run or root than the
// group's.
[[nodiscard]] std::string fractional_mesh(const topology::Topology& topology, const Group& group,
                                          const topology::Embedding& embedding, Programs& programs);

}  // namespace espalier::searched

#pragma once
// Lower bounds on the steps of any schedule of a collective: those by ports, log p and messages,
// and all together. Internal to collectives/verify.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// Lower bounds, and why greater ones may exist that were not searched (empty: the search was
// complete).
struct KnownBounds {
  std::vector<LowerBound> all;
  std::string limited;
};
// Returns all lower bounds that apply, at least one.
[[nodiscard]] KnownBounds all_bounds(const topology::Topology& topology, const Program& common,
                                     const BoundFacts& facts);
// Returns the bounds for a verdict: of several with the same formula only the first.
[[nodiscard]] std::vector<LowerBound> describe(const std::vector<LowerBound>& all);

}  // namespace espalier::verify

#pragma once
// Lower bounds on the steps of any schedule of a collective: those by ports, log p and messages,
// and all together. Internal to collectives/verify.

#include <cstdint>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// Facts about a schedule that rank 0's program does not contain.
struct Facts {
  bool links = false;       // no link carries more than its capacity in a step
  bool neighbours = false;  // every message goes from a node to a neighbour
};
// Returns all lower bounds that apply, at least one. `segment_count`: the largest segment count of
// a message.
[[nodiscard]] std::vector<LowerBound> all_bounds(const topology::Topology& topology,
                                                 const Program& common, std::int64_t segment_count,
                                                 Facts facts);
// Returns the bounds for a verdict: of several with the same formula only the first.
[[nodiscard]] std::vector<LowerBound> describe(const std::vector<LowerBound>& all);

}  // namespace espalier::verify

#pragma once
// Lower bounds on the steps by links: blocks that must cross a cut of the topology. Internal to
// collectives/verify.

#include <cstdint>
#include <vector>

#include "collectives/verify/bounds/lower_bounds.h"

namespace espalier::verify {

// Adds the bounds by links to `all`. `segment_count`: the largest segment count of a message.
void add_cuts(const topology::Topology& topology, const Program& common, std::int64_t segment_count,
              Facts facts, std::vector<LowerBound>& all);

}  // namespace espalier::verify

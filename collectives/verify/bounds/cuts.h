#pragma once
// Lower bounds on the steps by links: blocks that must cross a cut of the topology. Internal to
// collectives/verify.

#include "collectives/verify/bounds/lower_bounds.h"

namespace espalier::verify {

// Adds the bounds by links to `known`.
void add_cuts(const topology::Topology& topology, const Program& common, const BoundFacts& facts,
              KnownBounds& known);

}  // namespace espalier::verify

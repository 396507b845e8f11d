#pragma once
// The proof by expansion, one N after the other. Internal to collectives/verify.

#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// Checks all properties for each N up to options.max_blocks, or up to settling_bound() of all
// programs if that is 0. Sets Verdict::for_all only if the block table gives only one N.
[[nodiscard]] Verdict check_exhaustively(const topology::Topology& topology,
                                         const Programs& programs, const VerifyOptions& options);

}  // namespace espalier::verify

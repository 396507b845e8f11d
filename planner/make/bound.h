#pragma once
// The lower bound on a schedule's steps: the greatest of all that apply, which may be above the one
// that the schedule claims (a Count is one line, for large N). Host only.

#include <cstdint>
#include <vector>

#include "espalier/collectives/verify/verify.h"

namespace espalier::planner {

// Returns the lower bounds of a schedule that is not proven here: those that hold on any links.
// Returns none if its programs do not agree; bound_steps() then gives the bound that `program`
// claims.
[[nodiscard]] std::vector<verify::LowerBound> bounds_of(const topology::Topology& topology,
                                                        const verify::Programs& programs);
// The steps that they say for N = blocks.
[[nodiscard]] std::int64_t bound_steps(const std::vector<verify::LowerBound>& bounds,
                                       const Program& program, std::int64_t blocks);

}  // namespace espalier::planner

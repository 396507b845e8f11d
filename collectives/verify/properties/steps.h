#pragma once
// Property steps: each phase takes exactly the steps that it claims, their sum is the claim, and
// the claimed lower bound is one. Internal to collectives/verify.

#include <cstdint>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/report/counterexample.h"

namespace espalier::verify {

// Checks the claims for N = schedule.blocks.
[[nodiscard]] Finding check_steps(const ExpandedSchedule& schedule);

}  // namespace espalier::verify

#pragma once
// Whether a schedule stays within the limits of VerifyOptions. Proves nothing about it: what
// exceeds them is refused as too large, before memory of that size is taken. Internal to
// collectives/verify.

#include <cstdint>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/report/counterexample.h"

namespace espalier::verify {

// Adds the cost of expanding `program` for N = schedule.blocks to schedule.held and at.spent.
// too_large if that exceeds the limits. Call before expanding.
[[nodiscard]] Finding check_size(ExpandedSchedule& schedule, std::uint32_t node,
                                 const Program& program);
// Adds the cost of walking through the steps of all nodes to schedule.spent. If that exceeds the
// limit, the next check_size() refuses.
void add_steps(ExpandedSchedule& schedule);

}  // namespace espalier::verify

#pragma once
// Property hazards: no place is read before it is written, and none is overwritten before its last
// use, under any timing skew that the window lets a node have. Internal to collectives/verify.
//
// Each node alone, from rules 2 to 7 (hazard_rules.h). Other nodes order nothing here: they only
// delay. An access that must come first is safe exactly if it is certain to have happened before.
// The accesses to a place are taken in the order of a lock-step run. Checking each access against
// those since the last write orders all of them, because "before" is transitive.

#include <cstdint>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/report/counterexample.h"

namespace espalier::verify {

// Checks the instances of `node` in schedule.instances. Clears verdict.in_place if input and output
// may not be the same memory, and adds to verdict.checks.
[[nodiscard]] Finding check_hazards(const ExpandedSchedule& schedule, std::uint32_t node,
                                    Verdict& verdict);

}  // namespace espalier::verify

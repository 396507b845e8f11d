#pragma once
// Properties matching and deadlock. On every link send k, by (step, action), matches receive k: it
// moves the same blocks (kMatching). The receive is L - 1 steps later (rule 8; otherwise
// kDeadlock). Internal to collectives/verify.

#include <cstdint>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/report/counterexample.h"

namespace espalier::verify {

// Checks all links of schedule.instances, step by step.
[[nodiscard]] Finding check_matching(const ExpandedSchedule& schedule);
// Checks the link from -> to alone. Reads the instances of these two nodes only.
[[nodiscard]] Finding check_link(const ExpandedSchedule& schedule, std::uint32_t from,
                                 std::uint32_t to);

}  // namespace espalier::verify

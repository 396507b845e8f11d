#pragma once
// Property links: no link of the topology carries more messages at once than its capacity, along
// the routes of all messages. Internal to collectives/verify.

#include <cstdint>
#include <vector>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/report/counterexample.h"

namespace espalier::verify {

// One message on the route from -> to.
struct LinkUse {
  std::uint32_t from = 0, to = 0;  // nodes
  std::int64_t slot = 0;           // messages with equal slots travel in the same step
};

// Checks the loads of all links for N = schedule.blocks. Clears verdict.slot and verdict.async if
// they do not hold, and sets verdict.busiest to the busiest link under the claimed one if that link
// is closer to its capacity.
[[nodiscard]] Finding check_links(ExpandedSchedule& schedule, Verdict& verdict);
// Does the same for these uses.
[[nodiscard]] Finding check_loads(ExpandedSchedule& schedule, std::vector<LinkUse> uses,
                                  Verdict& verdict);

}  // namespace espalier::verify

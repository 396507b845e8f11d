#pragma once
// The lower bound on a schedule's steps (planner/make/bound.h) as commands print it. Host only.

#include <string>
#include <vector>

#include "espalier/collectives/verify/verify.h"
#include "planner/files/loaded_schedule.h"
#include "tools/common/json.h"

namespace espalier::tools {

// Returns planner::bounds_of() of a schedule file.
[[nodiscard]] std::vector<verify::LowerBound> bounds_of(const planner::LoadedSchedule& loaded);
// The same as JSON, with the witnesses (witness.h); null if there are none.
[[nodiscard]] Json certificate_of(const planner::LoadedSchedule& loaded);

// "2N+3", or "max(2N+3, ceil(26N/7))" where none is the greatest for every N that `program` has.
[[nodiscard]] std::string bound_text(const std::vector<verify::LowerBound>& bounds,
                                     const Program& program);
// "2N+3 steps: port and log p: ..."
[[nodiscard]] std::string lower_bound_text(const verify::LowerBound& bound);

}  // namespace espalier::tools

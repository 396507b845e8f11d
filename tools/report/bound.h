#pragma once
// The lower bound on a schedule's steps as commands print it: the greatest of all that apply, which
// may be above the one that the schedule claims (a Count is one line, for large N). Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/verify/verify.h"
#include "tools/common/json.h"
#include "tools/select/loaded_schedule.h"

namespace espalier::tools {

// Returns the lower bounds of a schedule that is not proven here: those that hold on any links.
// Returns none if its programs do not agree; the functions below then give the bound that `program`
// claims.
[[nodiscard]] std::vector<verify::LowerBound> bounds_of(const LoadedSchedule& loaded);
// The same as JSON, with the witnesses (witness.h); null if there are none.
[[nodiscard]] Json certificate_of(const LoadedSchedule& loaded);
// The same of programs that are kept elsewhere.
[[nodiscard]] std::vector<verify::LowerBound> bounds_of(const topology::Topology& topology,
                                                        const verify::Programs& programs);

// "2N+3", or "max(2N+3, ceil(26N/7))" where none is the greatest for every N that `program` has.
[[nodiscard]] std::string bound_text(const std::vector<verify::LowerBound>& bounds,
                                     const Program& program);
// "2N+3 steps: port and log p: ..."
[[nodiscard]] std::string lower_bound_text(const verify::LowerBound& bound);
// The steps that they say for N = blocks.
[[nodiscard]] std::int64_t bound_steps(const std::vector<verify::LowerBound>& bounds,
                                       const Program& program, std::int64_t blocks);

}  // namespace espalier::tools

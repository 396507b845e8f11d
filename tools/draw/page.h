#pragma once
// The page of `espalier draw`: one HTML file that needs nothing else. It holds the programs, not
// their steps: it expands them itself, for any N. Host only.

#include <cstdint>
#include <optional>
#include <string>

#include "planner/files/loaded_schedule.h"

namespace espalier::tools {

// blocks: N at first; step: the step shown at first (0: before the first). trace: none, or the
// JSON of a trace (`espalier simulate --trace`). Throws Failure (bad input) if that is not a trace.
[[nodiscard]] std::string make_page(const planner::LoadedSchedule& loaded, std::int64_t blocks,
                                    std::int64_t step, const std::optional<std::string>& trace);

}  // namespace espalier::tools

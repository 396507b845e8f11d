#pragma once
// Pictures of a schedule on its topology, for documents: self-contained SVG. Host only.

#include <cstdint>
#include <string>

#include "planner/files/loaded_schedule.h"

namespace espalier::tools {

enum class View { kStep, kTrees, kLoad };

// kStep: the transfers of step `step`; kTrees: the pairs that each segment's blocks pass; kLoad:
// how much of a period every link is busy. For N = blocks.
[[nodiscard]] std::string draw_picture(const planner::LoadedSchedule& loaded, View view,
                                       std::int64_t blocks, std::int64_t step);

}  // namespace espalier::tools

#pragma once
// Selections as commands print them. Host only.

#include <string>

#include "planner/files/schedule_set.h"
#include "tools/common/json.h"

namespace espalier::tools {

// Why a member serves a message of `bytes`: "1048576 bytes: two-tree (from 65536 bytes)". Empty:
// there is no selection.
[[nodiscard]] std::string reason_text(const planner::ScheduleSet& set,
                                      const planner::ChosenMember& chosen, std::uint64_t bytes);
// The table: a line for each row. Only of a selection.
[[nodiscard]] std::string rows_text(const planner::ScheduleSet& set);
// "broadcast by 3 schedules, root 0, model 0x0123456789abcdef, selection 0x..."
[[nodiscard]] std::string selection_text(const planner::ScheduleSet& set);
[[nodiscard]] Json selection_json(const planner::ScheduleSet& set);

}  // namespace espalier::tools

#pragma once
// One node's rows as a program. Internal to collectives/lower.

#include <cstdint>

#include "collectives/lower/timed_rows.h"
#include "collectives/schedule/table_limits.h"

namespace espalier::lower {

// Writes programs[node]. `paced`: rows with the same key become one action that looks up its steps,
// and the phase's period is 1. Otherwise each row is an action, and the phase has the period of
// the schedule. kTooLarge: the program's tables, or the looked-up one, are too small; `excess` then
// has the table, or is empty.
[[nodiscard]] Status write_node(const CollectiveParameters& parameters,
                                const TimedSchedule& schedule, bool paced, std::uint32_t node,
                                const NodeRows& rows, Programs& programs, TableExcess& excess);

}  // namespace espalier::lower

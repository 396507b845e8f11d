#pragma once
// One node's rows as a program. Internal to collectives/lower.

#include <cstdint>

#include "collectives/lower/timed_rows.h"

namespace espalier::lower {

// Writes programs[node]. `paced`: rows of one key are one action that looks their steps up, and the
// phase's period is 1; else each is an action of its own, and the phase's period is the schedule's.
// kTooLarge: the program's tables, or the one looked up, are too small.
[[nodiscard]] Status write_node(const Group& group, const TimedSchedule& schedule, bool paced,
                                std::uint32_t node, const NodeRows& rows, Programs& programs);

}  // namespace espalier::lower

#pragma once
// Programs as numbers, for other programs: what `espalier show --format json` prints. The schema is
// docs/schedule.schema.json. Host only.

#include <cstdint>

#include "planner/files/loaded_schedule.h"
#include "tools/common/json.h"

namespace espalier::tools {

// The schedule with the programs of all nodes, or of one (`node` >= 0), expanded into steps for
// N = `blocks`, if that is not 0.
[[nodiscard]] Json schedule_json(const planner::LoadedSchedule& loaded, std::int64_t node,
                                 std::int64_t blocks);

// The bytes of a node's descriptor.
[[nodiscard]] std::size_t descriptor_bytes(const planner::LoadedSchedule& loaded,
                                           std::uint32_t node);

}  // namespace espalier::tools

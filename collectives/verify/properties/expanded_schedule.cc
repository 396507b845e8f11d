#include "collectives/verify/properties/expanded_schedule.h"

#include <algorithm>

namespace espalier::verify {

void set_blocks(ExpandedSchedule& schedule, std::int64_t blocks) {
  schedule.blocks = blocks;
  schedule.held = 0;
  schedule.phase_first.assign(1, 0);
  for (std::uint32_t phase = 0; phase < schedule.common->phases_count; ++phase) {
    const Count& steps = schedule.common->counts[schedule.common->phases[phase].steps_ref];
    schedule.phase_first.push_back(schedule.phase_first.back() +
                                   std::max<std::int64_t>(0, count_value(steps, blocks)));
  }
}

}  // namespace espalier::verify

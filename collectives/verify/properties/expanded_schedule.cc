#include "collectives/verify/properties/expanded_schedule.h"

#include <algorithm>

namespace espalier::verify {

void set_blocks(Case& at, std::int64_t blocks) {
  at.blocks = blocks;
  at.held = 0;
  at.phase_first.assign(1, 0);
  for (std::uint32_t phase = 0; phase < at.common->phases_count; ++phase) {
    const Count& steps = at.common->counts[at.common->phases[phase].steps_ref];
    at.phase_first.push_back(at.phase_first.back() +
                             std::max<std::int64_t>(0, count_value(steps, blocks)));
  }
}

}  // namespace espalier::verify

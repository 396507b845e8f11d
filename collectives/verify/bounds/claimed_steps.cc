#include <algorithm>
#include <string>
#include <vector>

#include "base/counted.h"
#include "collectives/verify/bounds/claimed_bound.h"
#include "collectives/verify/properties/expanded_schedule.h"

namespace espalier::verify {

Finding check_steps(const ExpandedSchedule& schedule) {
  std::vector<std::int64_t> used(schedule.common->phases_count, 0);
  for (const std::vector<Instance>& node : schedule.instances) {
    for (const Instance& instance : node) {
      std::int64_t& steps = used[instance.phase];
      steps = std::max(steps, instance.step + 1 - schedule.phase_first[instance.phase]);
    }
  }
  const Program& common = *schedule.common;
  std::int64_t sum = 0;
  for (std::uint32_t phase = 0; phase < common.phases_count; ++phase) {
    const std::int64_t claimed =
        count_value(common.counts[common.phases[phase].steps_ref], schedule.blocks);
    if (claimed != used[phase]) {
      return found(Property::kSteps, schedule, -1, nullptr,
                   "phase " + std::to_string(phase) + " claims " + counted(claimed, "step") +
                       ", but " + std::to_string(used[phase]) +
                       " are used; the claim must be exact");
    }
    sum += claimed;
  }
  const std::int64_t claimed = count_value(common.counts[common.steps_ref], schedule.blocks);
  if (claimed != sum) {
    return found(Property::kSteps, schedule, -1, nullptr,
                 counted(claimed, "step") + (claimed == 1 ? " is" : " are") +
                     " claimed, but the phases have " + std::to_string(sum) +
                     " together; the claim must be exact");
  }
  return check_bound(schedule, sum);
}

}  // namespace espalier::verify

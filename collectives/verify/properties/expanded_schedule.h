#pragma once
// A schedule expanded for one N: the input of the checks of all properties. Internal to
// collectives/verify.

#include <cstdint>
#include <vector>

#include "collectives/schedule/expand.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

// All programs of a schedule for one N.
struct ExpandedSchedule {
  const topology::Topology* topology = nullptr;
  const Program* common = nullptr;  // rank 0's program: the source of all that ranks must agree on
  std::int64_t blocks = 1;          // N
  std::int64_t max_instances = VerifyOptions{}.max_instances;
  std::int64_t max_instances_total = VerifyOptions{}.max_instances_total;
  std::int64_t held = 0;   // instances and places of this N that check_size() counted so far
  std::int64_t spent = 0;  // the same of all N, plus their steps (checks.h)
  std::vector<LowerBound> bounds = {};                // lower bounds on the steps
  std::vector<std::int64_t> phase_first = {};         // first step of each phase, then the end
  std::vector<std::vector<Instance>> instances = {};  // by node; each ordered by (step, action)

  [[nodiscard]] std::int64_t steps() const { return phase_first.back(); }
  // The last step that has retired before `step` is issued (rule 2); -1: none has to.
  [[nodiscard]] std::int64_t gate(std::int64_t step, std::uint32_t phase) const {
    const std::int64_t by_window = step - common->window;
    const std::int64_t by_phase = phase_first[phase] - 1;
    return by_window > by_phase ? by_window : by_phase;
  }
};

// Sets schedule.blocks and schedule.phase_first, and at.held to 0: nothing of this N is held yet.
void set_blocks(ExpandedSchedule& schedule, std::int64_t blocks);

}  // namespace espalier::verify

#include "collectives/schedule/expand.h"

#include <algorithm>

#include "espalier/internal/base/arithmetic.h"

namespace espalier {
namespace {

struct Walk {
  const Program& program;
  std::int64_t blocks;
};

OperandAt operand_at(const Walk& walk, const Action& action, bool present, const Operand& operand,
                     std::int64_t i) {
  OperandAt expanded;
  if (!present) return expanded;
  expanded.buffer = operand.buffer;
  expanded.segment = index_value(walk.program, operand.segment_ref, i);
  expanded.block = index_value(walk.program, operand.block_ref, i);
  if (action.clamp) expanded.block = std::min(expanded.block, walk.blocks - 1);
  if (operand.buffer == Buffer::kScratch) {
    expanded.slot = index_value(walk.program, operand.slot_ref, i);
    if (has_rotated_scratch(walk.program)) expanded.rotation = walk.program.segments;
  }
  expanded.segment_count = operand_segment_count(operand);
  return expanded;
}

// Adds the existing instances of one action. `first_step` is the schedule's step number of the
// phase's step 0.
void expand_action(const Walk& walk, std::uint32_t phase, std::uint32_t action_index,
                   std::int64_t first_step, std::int64_t steps, std::vector<Instance>& out) {
  const Program& program = walk.program;
  const Action& action = program.actions[action_index];
  const std::int64_t period = program.phases[phase].period;
  const std::int64_t t0 = count_value(program.counts[action.t0_ref], walk.blocks);
  const std::int64_t instances = count_value(program.counts[action.instances_ref], walk.blocks);
  const bool has_pace = action.pace_ref != 0;
  const std::int64_t first = has_pace ? 0 : std::max<std::int64_t>(0, ceil_div(-t0, period));
  const std::int64_t last = floor_div(steps - 1 - t0, period);
  const std::int64_t end = has_pace ? instances : std::min(instances, last + 1);
  const bool send = action.kind == ActionKind::kSend;
  const std::uint32_t block_ref = send ? action.a.block_ref : action.into.block_ref;
  for (std::int64_t i = first; i < end; ++i) {
    const std::int64_t block = index_value(program, block_ref, i);
    if (block < 0 || (block >= walk.blocks && !action.clamp)) continue;
    const std::int64_t step =
        t0 + period * (has_pace ? index_value(program, action.pace_ref, i) : i);
    if (step < 0 || step >= steps) continue;
    Instance instance;
    instance.step = first_step + step;
    instance.phase = phase;
    instance.action = action_index;
    instance.i = i;
    instance.kind = action.kind;
    if (send || action.kind == ActionKind::kReceive) {
      instance.link = index_value(program, action.link_ref, i);
      const bool known = instance.link >= 0 && instance.link < links_count(program);
      if (known) instance.peer = peer_of(program, static_cast<std::uint32_t>(instance.link));
    }
    instance.after = action.after;
    instance.into = operand_at(walk, action, action.has_into, action.into, i);
    instance.a = operand_at(walk, action, action.has_a, action.a, i);
    instance.b = operand_at(walk, action, action.has_b, action.b, i);
    out.push_back(instance);
  }
}

}  // namespace

std::vector<Instance> expand(const Program& program, std::int64_t blocks) {
  const Walk walk{program, blocks};
  std::vector<Instance> instances;
  std::int64_t first_step = 0;
  std::uint32_t action = 0;
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    const std::int64_t steps = std::max<std::int64_t>(
        0, count_value(program.counts[program.phases[phase].steps_ref], blocks));
    for (std::uint32_t end = action + program.phases[phase].actions; action < end; ++action) {
      expand_action(walk, phase, action, first_step, steps, instances);
    }
    first_step += steps;
  }
  std::stable_sort(instances.begin(), instances.end(), [](const Instance& a, const Instance& b) {
    return a.step != b.step ? a.step < b.step : a.action < b.action;
  });
  return instances;
}

}  // namespace espalier

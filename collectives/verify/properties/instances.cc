#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/counted.h"
#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/operands.h"
#include "collectives/verify/properties/program_facts.h"
#include "espalier/internal/base/step_limits.h"

namespace espalier::verify {
namespace {

// Checks that the segments, block and slots of an operand of `instance` exist.
Finding check_operand(const ExpandedSchedule& schedule, std::uint32_t node, const Program& program,
                      const Instance& instance, const OperandAt& operand) {
  const std::int64_t last = operand.segment_count - std::int64_t{1};
  const std::int64_t last_segment = operand.segment_at(last);
  if (operand.segment < 0 || operand.segment >= program.segments ||
      last_segment >= program.segments) {
    const std::int64_t wrong =
        operand.segment < 0 ? operand.segment : std::max(operand.segment, last_segment);
    return found(Property::kForm, schedule, node, &instance,
                 "segment " + std::to_string(wrong) + " does not exist; there are " +
                     std::to_string(program.segments));
  }
  if (operand.block < 0 || operand.block >= schedule.blocks) {
    return found(Property::kForm, schedule, node, &instance,
                 "block " + std::to_string(operand.block) + " does not exist; there are " +
                     std::to_string(schedule.blocks));
  }
  if (operand.buffer == Buffer::kScratch &&
      (operand.slot < 0 || operand.slot + last >= program.scratch_blocks)) {
    const std::int64_t wrong = operand.slot < 0 ? operand.slot : operand.slot + last;
    return found(Property::kClaims, schedule, node, &instance,
                 "scratch slot " + std::to_string(wrong) +
                     " is used, but the program claims only " +
                     counted(program.scratch_blocks, "block") + " of scratch");
  }
  return std::nullopt;
}

// Rotated scratch: returns the position of the operand's first segment in its area.
std::int64_t position_of(const Program& program, const OperandAt& operand) {
  const std::int64_t after = operand.segment - std::int64_t{program.node};
  return after < 0 ? after + program.segments : after;
}

// Checks that an operand in rotated scratch is inside an area.
Finding check_rotated(const ExpandedSchedule& schedule, std::uint32_t node, const Program& program,
                      const Instance& instance, const OperandAt& operand) {
  if (operand.rotation == 0) return std::nullopt;
  const std::int64_t position = position_of(program, operand);
  if (position + operand.segment_count > program.segments) {
    return found(Property::kForm, schedule, node, &instance,
                 block_name(operand) + " pass the node's own segment, " + std::to_string(node) +
                     ", with which each area of rotated scratch begins");
  }
  if (operand.slot < position) {
    return found(Property::kForm, schedule, node, &instance,
                 operand_name(operand) + " is too low for " + block_name(operand) +
                     ": slots of rotated scratch follow that of the node's own segment, " +
                     std::to_string(node) + ", without gaps");
  }
  return std::nullopt;
}

// Checks the areas of rotated scratch: each slot is in one of them, and the slots of one area are
// not among another's. Otherwise operands without a common slot may share memory, because segments
// that are shorter than a slot leave no gaps.
Finding check_areas(const ExpandedSchedule& schedule, std::uint32_t node, const Program& program) {
  if (!has_rotated_scratch(program)) return std::nullopt;
  struct Area {
    std::int64_t begin = -1;  // a slot; -1: no operand uses this one
    const Instance* instance = nullptr;
  };
  std::vector<Area> areas(used_slots(schedule.instances[node]));  // by slot
  const auto slot_in = [](std::int64_t slot, std::int64_t begin) {
    return "scratch slot " + std::to_string(slot) + " is in the area from slot " +
           std::to_string(begin);
  };
  for (const Instance& instance : schedule.instances[node]) {
    for (const OperandAt* operand : {&instance.into, &instance.a, &instance.b}) {
      if (operand->buffer != Buffer::kScratch) continue;
      const std::int64_t begin = operand->slot - position_of(program, *operand);
      for (std::uint32_t part = 0; part < operand->segment_count; ++part) {
        const std::int64_t slot = operand->slot + part;
        Area& area = areas[static_cast<std::size_t>(slot)];
        if (area.begin >= 0 && area.begin != begin) {
          return found(Property::kForm, schedule, node, &instance,
                       slot_in(slot, begin) + ", but in the one from slot " +
                           std::to_string(area.begin) + " elsewhere");
        }
        area = {begin, &instance};
      }
    }
  }
  std::int64_t begin = 0, last = -1;
  for (std::size_t slot = 0; slot < areas.size(); ++slot) {
    if (areas[slot].begin < 0) continue;
    if (areas[slot].begin != begin && areas[slot].begin <= last) {
      return found(Property::kForm, schedule, node, areas[slot].instance,
                   slot_in(static_cast<std::int64_t>(slot), areas[slot].begin) + ", and " +
                       slot_in(last, begin) + ": areas may not overlap");
    }
    begin = areas[slot].begin;
    last = static_cast<std::int64_t>(slot);
  }
  return std::nullopt;
}

// Checks that the buffer holds the operand's part of the message (buffer_extent). In a barrier
// INPUT, of no bytes, stands for the arrival of the rank.
Finding check_buffer(const ExpandedSchedule& schedule, std::uint32_t node, const Program& program,
                     const Instance& instance, const OperandAt& operand) {
  if (operand.buffer == Buffer::kScratch) return std::nullopt;
  const bool input = operand.buffer == Buffer::kInput;
  const std::string name = input ? "input" : "output";
  Extent extent = buffer_extent(program, operand.buffer);
  if (program.collective == Collective::kBarrier && input && !is_router(program)) {
    extent = Extent::kWhole;
  }
  if (extent == Extent::kNothing) {
    return found(Property::kDataFlow, schedule, node, &instance,
                 "the " + name + " of " + schedule.topology->node_name(node) + " is used, but " +
                     (is_router(program) ? "routers have scratch only"
                                         : "in this collective its caller gives none"));
  }
  if (extent == Extent::kOwn && (operand.segment != node || operand.segment_count != 1)) {
    return found(Property::kDataFlow, schedule, node, &instance,
                 operand_name(operand) +
                     " is used, but that buffer holds the node's own segment only, " +
                     std::to_string(node));
  }
  return std::nullopt;
}

// Checks an operand against the one whose block the instance moves: the same block, and either the
// same memory or none of it.
Finding check_operand(const ExpandedSchedule& schedule, std::uint32_t node,
                      const Instance& instance, const OperandAt& operand) {
  const OperandAt& target = moved(instance);
  if (!same_blocks(*schedule.common, operand, target)) {
    return found(Property::kForm, schedule, node, &instance,
                 "an operand is " + block_name(operand) + ", the result " + block_name(target) +
                     "; both must be the same block");
  }
  const bool slots = operand.buffer == Buffer::kScratch;
  const std::int64_t apart = slots ? operand.slot - target.slot : operand.segment - target.segment;
  if (operand.buffer == target.buffer && apart != 0 && std::abs(apart) < operand.segment_count) {
    return found(
        Property::kHazards, schedule, node, &instance,
        operand_name(operand) + " and " + operand_name(target) +
            " overlap; what is read and what is written must be the same operand or apart");
  }
  return std::nullopt;
}

// Checks that the message goes the way of its link: links may be one-way.
Finding check_direction(const ExpandedSchedule& schedule, std::uint32_t node,
                        const Program& program, const Instance& instance) {
  const auto peer = static_cast<std::uint32_t>(instance.peer);
  const bool send = instance.kind == ActionKind::kSend;
  const std::uint32_t from = send ? node : peer, to = send ? peer : node;
  if (!is_absent_link(*schedule.topology, program, from, to)) return std::nullopt;
  const std::string other = schedule.topology->node_name(peer);
  return found(Property::kLinks, schedule, node, &instance,
               (send ? "it sends to " : "it receives from ") + other + ", but " +
                   schedule.topology->title() + " has a link in the other direction only");
}

// Checks that a pace never decreases and stays inside the phase, because machines step through the
// instances in order, and that a combine or copy has at most kMaxStepInstances in a step.
Finding check_paces(const ExpandedSchedule& schedule, std::uint32_t node, const Program& program) {
  std::uint32_t k = 0;
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    const std::int64_t steps =
        count_value(program.counts[program.phases[phase].steps_ref], schedule.blocks);
    for (const std::uint32_t end = k + program.phases[phase].actions; k < end; ++k) {
      const Action& action = program.actions[k];
      if (action.pace_ref == 0) continue;
      const std::int64_t first = count_value(program.counts[action.t0_ref], schedule.blocks);
      const std::int64_t many = count_value(program.counts[action.instances_ref], schedule.blocks);
      const bool transfer = action.kind == ActionKind::kSend || action.kind == ActionKind::kReceive;
      std::int64_t earliest = 0, in_step = 0;
      for (std::int64_t i = 0; i < many; ++i) {
        const std::int64_t step =
            first + program.phases[phase].period * index_value(program, action.pace_ref, i);
        in_step = step == earliest ? in_step + 1 : 1;
        if (!transfer && in_step > kMaxStepInstances) {
          return found(Property::kForm, schedule, node, nullptr,
                       "action " + std::to_string(k) + " has more than " +
                           std::to_string(kMaxStepInstances) + " operations in step " +
                           std::to_string(step) + " of phase " + std::to_string(phase));
        }
        if (step >= earliest && step < steps) {
          earliest = step;
          continue;
        }
        return found(Property::kForm, schedule, node, nullptr,
                     "the pace of action " + std::to_string(k) + " gives instance " +
                         std::to_string(i) + " step " + std::to_string(step) + " of phase " +
                         std::to_string(phase) + "; it must be " + std::to_string(earliest) +
                         " or later, and the phase has " + std::to_string(steps));
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Finding check_instances(const ExpandedSchedule& schedule, std::uint32_t node,
                        const Program& program) {
  if (Finding finding = check_paces(schedule, node, program)) return finding;
  for (const Instance& instance : schedule.instances[node]) {
    const bool transfer =
        instance.kind == ActionKind::kSend || instance.kind == ActionKind::kReceive;
    if (transfer && instance.peer < 0) {
      return found(Property::kForm, schedule, node, &instance,
                   "link " + std::to_string(instance.link) + " is not in the table of " +
                       counted(links_count(program), "peer"));
    }
    if (transfer) {
      if (Finding finding = check_direction(schedule, node, program, instance)) return finding;
    }
    for (const OperandAt* operand : {&instance.into, &instance.a, &instance.b}) {
      if (operand->buffer == Buffer::kNone) continue;
      if (Finding finding = check_operand(schedule, node, program, instance, *operand))
        return finding;
      if (Finding finding = check_rotated(schedule, node, program, instance, *operand))
        return finding;
      if (Finding finding = check_buffer(schedule, node, program, instance, *operand))
        return finding;
      if (Finding finding = check_operand(schedule, node, instance, *operand)) return finding;
    }
    if (instance.kind == ActionKind::kCombine && !has_operator(program.collective)) {
      return found(Property::kForm, schedule, node, &instance,
                   "it combines, but this collective takes no operator");
    }
  }
  return check_areas(schedule, node, program);
}

}  // namespace espalier::verify

#include <algorithm>
#include <string>

#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::verify {
namespace {

// Idle steps of a rank that take the time of one instance.
constexpr std::int64_t kIdleSteps = 32;
// Larger numbers exceed every limit. Products of this with table entries stay inside 64 bits.
constexpr std::int64_t kMost = std::int64_t{1} << 32;

// The work of expanding a program for one N.
struct Work {
  std::int64_t instances = 0;  // that expand() examines, each counted once per segment
  std::uint32_t action = 0;    // the one with the most of them
  std::int64_t most = 0;       // instances of this action
};

// Without a pace an action has at most one instance per period of its phase.
Work work_of(const Program& program, std::int64_t blocks) {
  Work work;
  std::uint32_t next = 0;
  for (std::uint32_t phase = 0; phase < program.phases_count; ++phase) {
    const std::int64_t steps = count_value(program.counts[program.phases[phase].steps_ref], blocks);
    const std::int64_t periods =
        std::clamp<std::int64_t>(ceil_div(steps, program.phases[phase].period), 0, kMost);
    for (std::uint32_t end = next + program.phases[phase].actions; next < end; ++next) {
      const Action& action = program.actions[next];
      const std::int64_t instances = count_value(program.counts[action.instances_ref], blocks);
      const std::int64_t segment_count =
          std::max(operand_segment_count(action.into), operand_segment_count(action.a));
      const std::int64_t taken =
          segment_count *
          std::clamp<std::int64_t>(instances, 0, action.pace_ref == 0 ? periods : kMost);
      work.instances += taken;
      if (taken <= work.most) continue;
      work.action = next;
      work.most = taken;
    }
  }
  return work;
}

}  // namespace

std::int64_t max_total(const VerifyOptions& options, std::uint32_t nodes, std::int64_t times) {
  if (options.max_blocks > 0) return options.max_instances_total;
  return std::min(options.max_instances_total,
                  times * (kMaxInstancesAnyFile + kMaxInstancesPerNode * std::int64_t{nodes}));
}

void add_steps(ExpandedSchedule& schedule) {
  schedule.spent +=
      std::min(kMost, ceil_div(schedule.steps(), kIdleSteps)) * program_nodes(*schedule.common);
}

std::string costliest_text(const ExpandedSchedule& schedule, const Program& program) {
  const Work work = work_of(program, schedule.blocks);
  const std::int64_t places = std::int64_t{program.segments} * schedule.blocks;
  const std::int64_t slots = program.scratch_blocks;
  const std::int64_t steps = ceil_div(phase_steps(program, schedule.blocks), kIdleSteps);
  const std::int64_t most = std::max({work.most, places, slots, steps});
  const std::string text = "; of this N and rank the most are ";
  const std::string number = std::to_string(most);
  if (work.most == most) {
    return text + number + " instances of action " + std::to_string(work.action);
  }
  if (steps == most) return text + "the steps: one for each " + std::to_string(kIdleSteps);
  return text + number + (places == most ? " places" : " slots of scratch");
}

Finding check_size(ExpandedSchedule& schedule, std::uint32_t node, const Program& program) {
  const std::int64_t needed = work_of(program, schedule.blocks).instances +
                              std::int64_t{program.segments} * schedule.blocks +
                              std::int64_t{program.scratch_blocks};
  schedule.held += needed;
  schedule.spent += needed;
  const auto too_many = [&](std::int64_t taken, std::int64_t most, const std::string& what,
                            const std::string& scope) {
    return too_large(Property::kForm, schedule, node,
                     std::to_string(taken) + " " + what + " up to here are more than can be " +
                         "checked; " + std::to_string(most) + " are for " + scope +
                         costliest_text(schedule, program));
  };
  if (schedule.held > schedule.max_instances) {
    return too_many(schedule.held, schedule.max_instances, "instances and places", "one N");
  }
  if (schedule.spent > schedule.max_instances_total) {
    return too_many(schedule.spent, schedule.max_instances_total, "instances, places and steps",
                    "all N together");
  }
  return std::nullopt;
}

}  // namespace espalier::verify

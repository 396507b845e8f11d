// Which programs can run with a count for each rank.

#include <algorithm>
#include <limits>

#include "espalier/collectives/schedule/program.h"

#if ESPALIER_UNEQUAL_COUNTS
namespace espalier {
namespace {

// Whether the all-to-all's parts go from their origin's INPUT to their destination's OUTPUT
// directly.
bool goes_directly(const Program& program) {
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    const Action& action = program.actions[k];
    if (action.has_into && action.into.buffer != Buffer::kOutput) return false;
    if (action.has_a && action.a.buffer != Buffer::kInput) return false;
    if (action.has_b) return false;
  }
  return true;
}

// An operand in scratch: its slots, and the segment of the first.
struct Slots {
  std::int64_t first, end, segment;
};

// Calls visit(slots) for the operands in scratch of all instances for N = 1. Operands of steps
// outside the phase, which do not exist, are visited, too: at worst a program is refused that could
// run.
template <typename Visit>
void visit_operand(const Program& program, const Action& action, bool present,
                   const Operand& operand, Visit visit) {
  if (!present || operand.buffer != Buffer::kScratch) return;
  const auto is_constant = [&program](std::uint32_t ref) {
    return program.indices[ref].coef == 0 && program.indices[ref].terms == 0;
  };
  std::int64_t instances = count_value(program.counts[action.instances_ref], 1);
  if (is_constant(operand.segment_ref) && is_constant(operand.slot_ref)) {
    instances = std::min<std::int64_t>(instances, 1);
  }
  for (std::int64_t i = 0; i < instances; ++i) {
    const std::int64_t slot = index_value(program, operand.slot_ref, i);
    visit(Slots{slot, slot + operand_segment_count(operand),
                index_value(program, operand.segment_ref, i)});
  }
}

template <typename Visit>
void visit_scratch(const Program& program, Visit visit) {
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    const Action& action = program.actions[k];
    visit_operand(program, action, action.has_into, action.into, visit);
    visit_operand(program, action, action.has_a, action.a, visit);
    visit_operand(program, action, action.has_b, action.b, visit);
  }
}

bool has_several_segments(const Program& program) {
  bool several = false;
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    const Action& action = program.actions[k];
    for (const Operand* operand : {&action.into, &action.a, &action.b}) {
      several = several || operand_segment_count(*operand) > 1;
    }
  }
  return several;
}

// Finds the groups of slots, and how each holds its segments.
class GroupFinder {
 public:
  GroupFinder(const Program& program, SlotGroups& found) : program_(program), found_(found) {}

  [[nodiscard]] bool find() {
    found_.count = 0;
    while (fits_ && add_next_group()) {
    }
    if (fits_) visit(Pass::kExamine);
    for (std::uint32_t k = 0; k < found_.count && fits_; ++k) {
      SlotGroup& group = found_.groups[k];
      if (differ_[k]) group.first_segment = 0;
      const bool in_order = !differ_[k] && group.end - group.first <= program_.segments;
      fits_ = in_order || !inside_[k];
    }
    return fits_;
  }

 private:
  enum class Pass : std::uint8_t {
    kBegin,    // finds the first operand with several segments after the groups found so far
    kGrow,     // adds the operands with several segments that begin in next_
    kExamine,  // as examine()
  };
  // One function for all passes: visit_scratch() is inlined once.
  void visit(Pass pass) {
    visit_scratch(program_, [this, pass](const Slots& slots) {
      if (pass == Pass::kExamine) return examine(slots);
      if (slots.end - slots.first == 1) return;
      fits_ = fits_ && slots.first >= 0 && slots.end <= std::int64_t{program_.scratch_blocks};
      if (pass == Pass::kBegin) {
        if (slots.first >= found_end_ && slots.first < next_.first) next_ = slots;
      } else if (slots.first >= next_.first && slots.first < next_.end) {
        next_.end = std::max(next_.end, slots.end);
      }
    });
  }

  // Adds the group of the operand with several segments that begins first after the groups found
  // so far, and of all that overlap it. An operand may join others that come before it in the
  // program, so the operands are visited until the group grows no more.
  [[nodiscard]] bool add_next_group() {
    next_.first = std::numeric_limits<std::int64_t>::max();
    visit(Pass::kBegin);
    if (!fits_ || next_.first == std::numeric_limits<std::int64_t>::max()) return false;
    for (std::int64_t end = 0; end != next_.end;) {
      end = next_.end;
      visit(Pass::kGrow);
    }
    fits_ = found_.count < SlotGroups::kMax;
    if (!fits_) return false;
    found_end_ = next_.end;
    found_.groups[found_.count++] = {static_cast<std::uint32_t>(next_.first),
                                     static_cast<std::uint32_t>(next_.end), 0};
    return true;
  }

  // Notes for the operand's group which segment its first slot then has, and whether the operand
  // begins inside.
  void examine(const Slots& slots) {
    for (std::uint32_t k = 0; k < found_.count; ++k) {
      SlotGroup& group = found_.groups[k];
      if (slots.first < std::int64_t{group.first} || slots.first >= std::int64_t{group.end}) {
        continue;
      }
      std::int64_t segment = slots.segment - (slots.first - group.first);
      if (segment < 0) segment += program_.segments;
      const bool exists = segment >= 0 && slots.segment < std::int64_t{program_.segments};
      const std::uint32_t first_segment = exists ? static_cast<std::uint32_t>(segment) + 1 : 0;
      differ_[k] = differ_[k] || !exists ||
                   (group.first_segment != 0 && group.first_segment != first_segment);
      group.first_segment = first_segment;
      inside_[k] = inside_[k] || slots.first != std::int64_t{group.first};
    }
  }

  const Program& program_;
  SlotGroups& found_;
  Slots next_{0, 0, 0};         // of the group that is being found
  std::int64_t found_end_ = 0;  // of the last group that was
  bool fits_ = true;
  bool differ_[SlotGroups::kMax] = {}, inside_[SlotGroups::kMax] = {};  // by group
};

}  // namespace

bool takes_unequal_counts(const Program& program, SlotGroups& groups) {
  groups = {};
  if (!counts_per_rank(program.collective)) return false;
  // A router that passes a part on has it in scratch; one that does nothing passes none on.
  if (program.collective == Collective::kAllToAll) return goes_directly(program);
  if (has_rotated_scratch(program)) return true;
  return !has_several_segments(program) || GroupFinder(program, groups).find();
}

}  // namespace espalier
#endif

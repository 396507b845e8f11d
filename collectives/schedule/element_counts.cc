// Which programs can run with a count for each rank.

#include <algorithm>

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

bool is_in_scratch(bool present, const Operand& operand) {
  return present && operand.buffer == Buffer::kScratch;
}

// Calls visit(action, operand) for each operand in scratch.
template <typename Visit>
void for_each_in_scratch(const Program& program, Visit visit) {
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    const Action& action = program.actions[k];
    if (is_in_scratch(action.has_into, action.into)) visit(action, action.into);
    if (is_in_scratch(action.has_a, action.a)) visit(action, action.a);
    if (is_in_scratch(action.has_b, action.b)) visit(action, action.b);
  }
}

// Finds the segment of slot 0, on which all operands in scratch must agree.
class SlotOrder {
 public:
  explicit SlotOrder(const Program& program) : program_(program) {}

  // Adds an operand's instances for N = 1. Those of steps outside the phase, which do not exist,
  // are added too: at worst a program is refused that could run.
  void add(const Action& action, const Operand& operand) {
    std::int64_t instances = count_value(program_.counts[action.instances_ref], 1);
    if (is_constant(operand.segment_ref) && is_constant(operand.slot_ref)) {
      instances = std::min<std::int64_t>(instances, 1);
    }
    for (std::int64_t i = 0; i < instances && agrees_; ++i) {
      add(index_value(program_, operand.segment_ref, i),
          index_value(program_, operand.slot_ref, i));
    }
  }

  // Whether all agree; 1 + the segment of slot 0.
  [[nodiscard]] bool agrees() const { return agrees_; }
  [[nodiscard]] std::uint32_t packed_slots() const { return packed_slots_; }

 private:
  [[nodiscard]] bool is_constant(std::uint32_t ref) const {
    return program_.indices[ref].coef == 0 && program_.indices[ref].terms == 0;
  }
  void add(std::int64_t segment, std::int64_t slot) {
    const std::int64_t segments = program_.segments;
    const bool exist = segment >= 0 && segment < segments && slot >= 0 && slot < segments;
    const std::int64_t first = segment >= slot ? segment - slot : segment - slot + segments;
    const auto packed_slots = static_cast<std::uint32_t>(1 + first);
    agrees_ = exist && (packed_slots_ == 0 || packed_slots_ == packed_slots);
    packed_slots_ = packed_slots;
  }

  const Program& program_;
  bool agrees_ = true;
  std::uint32_t packed_slots_ = 0;
};

}  // namespace

bool takes_unequal_counts(const Program& program, std::uint32_t& packed_slots) {
  packed_slots = 0;
  if (!counts_per_rank(program.collective)) return false;
  if (program.collective == Collective::kAllToAll) {
    return !is_router(program) && goes_directly(program);
  }
  bool several = false;
  for_each_in_scratch(program, [&several](const Action&, const Operand& operand) {
    several = several || operand_segment_count(operand) > 1;
  });
  if (!several) return true;
  SlotOrder order(program);
  for_each_in_scratch(program, [&order](const Action& action, const Operand& operand) {
    order.add(action, operand);
  });
  packed_slots = order.packed_slots();
  return order.agrees();
}

}  // namespace espalier
#endif

#include "collectives/verify/properties/operands.h"

#include <algorithm>

namespace espalier::verify {
namespace {

// "segment 3"; for several segments "segments 3-5".
std::string numbered(const std::string& what, std::int64_t first, std::uint32_t segment_count) {
  if (segment_count <= 1) return what + " " + std::to_string(first);
  return what + "s " + std::to_string(first) + "-" + std::to_string(first + segment_count - 1);
}

}  // namespace

std::string block_name(const OperandAt& operand) {
  const std::string block = "block " + std::to_string(operand.block) + " of ";
  const std::int64_t last = operand.segment_at(operand.segment_count - std::int64_t{1});
  if (last >= operand.segment) {
    return block + numbered("segment", operand.segment, operand.segment_count);
  }
  const auto rest = static_cast<std::uint32_t>(last + 1);
  return block + numbered("segment", operand.segment, operand.segment_count - rest) + " and " +
         numbered("segment", 0, rest);
}

std::size_t used_slots(const std::vector<Instance>& all) {
  std::int64_t slots = 0;
  for (const Instance& instance : all) {
    for (const OperandAt* operand : {&instance.into, &instance.a, &instance.b}) {
      if (operand->buffer == Buffer::kScratch)
        slots = std::max(slots, operand->slot + operand->segment_count);
    }
  }
  return static_cast<std::size_t>(slots);
}

std::string operand_name(const OperandAt& operand) {
  if (operand.buffer == Buffer::kScratch) {
    return numbered("scratch slot", operand.slot, operand.segment_count);
  }
  return (operand.buffer == Buffer::kInput ? "input " : "output ") + block_name(operand);
}

}  // namespace espalier::verify

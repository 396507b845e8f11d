#include "collectives/build/one_block.h"

namespace espalier {

void repeat_block(Builder& builder, Action& action, std::uint32_t times) {
  action.instances_ref = builder.count(static_cast<std::int32_t>(times), 0);
  action.into.block_ref = action.a.block_ref = action.b.block_ref = builder.constant(0);
}

std::uint8_t links_from(Builder& builder, std::uint32_t first) {
  Index row{};
  row.base = static_cast<std::int32_t>(first);
  row.coef = 1;
  return builder.index(row);
}

Operand slots_from(Builder& builder, const Ring& ring, std::uint32_t first) {
  if (ring.slots == 1) return builder.slot(0, ring);
  Index row{};
  row.base = static_cast<std::int32_t>(ring.first);
  row.coef = 1;
  row.off = static_cast<std::int32_t>(first % ring.slots);
  row.mod = ring.slots;
  Operand operand = Builder::operand(Buffer::kScratch, builder.constant(0));
  operand.slot_ref = builder.index(row);
  return operand;
}

Ring ring_of_receives(Builder& builder, std::uint32_t receives, std::uint32_t window) {
  const std::uint32_t slots = receives < window ? receives : window;
  return {builder.scratch(slots), slots};
}

}  // namespace espalier

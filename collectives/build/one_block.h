#pragma once
// Actions of schedules for one block, which run in consecutive steps, always on block 0.
// Freestanding.

#include "collectives/build/builder.h"

namespace espalier {

// Gives the action `times` instances, all of block 0.
void repeat_block(Builder& builder, Action& action, std::uint32_t times);

// The index of link `first` + i in instance i.
[[nodiscard]] std::uint8_t links_from(Builder& builder, std::uint32_t first);

// Block 0 in slot number (first + i) mod ring.slots of a ring, in instance i.
[[nodiscard]] Operand slots_from(Builder& builder, const Ring& ring, std::uint32_t first);

// Allocates slots for `receives` receives in consecutive steps, each used in its own step only.
[[nodiscard]] Ring ring_of_receives(Builder& builder, std::uint32_t receives, std::uint32_t window);

}  // namespace espalier

#pragma once
// Test helper: what the algorithms' own files say of their steps, and of what they can do. Host
// only.

#include <cstdint>

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier {

// The exact number, or a range.
struct Steps {
  std::int64_t least, most;
};
[[nodiscard]] Steps expected_steps(const Algorithm& algorithm, const Group& group,
                                   std::int64_t blocks);

// Whether the algorithm can do that many ranks.
[[nodiscard]] bool supports(const Algorithm& algorithm, std::uint32_t ranks);
// Whether it has N = 1 for every message.
[[nodiscard]] bool one_block(const Algorithm& algorithm);
// Whether its steps grow with the ranks, a round of p-1 a block.
[[nodiscard]] bool in_rounds(const Algorithm& algorithm);
// Whether its programs say that operators must commute.
[[nodiscard]] bool needs_commutative(const Algorithm& algorithm, const Group& group);

}  // namespace espalier

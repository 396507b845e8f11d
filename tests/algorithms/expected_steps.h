#pragma once
// Test helper: the steps of the algorithms and the parameters that they support, as their own files
// state them. Host only.

#include <cstdint>

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier {

// Returns ceil(log2(ranks)).
[[nodiscard]] std::int64_t log_of(std::int64_t ranks);

// An exact number, or a range.
struct Steps {
  std::int64_t least, most;
};
[[nodiscard]] Steps expected_steps(const Algorithm& algorithm,
                                   const CollectiveParameters& parameters, std::int64_t blocks);

// Whether the algorithm supports this number of ranks.
[[nodiscard]] bool supports(const Algorithm& algorithm, std::uint32_t ranks);
// Returns the smallest N >= blocks that the program's residue allows.
[[nodiscard]] std::int64_t allowed_blocks(const Program& program, std::int64_t blocks);
// Whether the algorithm has N = 1 for every message.
[[nodiscard]] bool one_block(const Algorithm& algorithm);
// Whether its steps grow with the ranks: a round of p-1 steps per block.
[[nodiscard]] bool in_rounds(const Algorithm& algorithm);
// Whether its programs require commutative operators.
[[nodiscard]] bool needs_commutative(const Algorithm& algorithm,
                                     const CollectiveParameters& parameters);

}  // namespace espalier

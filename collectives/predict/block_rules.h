#pragma once
// Block tables from a model: for each size of the message the block length with which a schedule
// takes least time, if each of its steps(N) steps takes alpha + beta * block. For steps(N) = a +
// b*N and a message of s segments of m/s bytes, the best N is sqrt(a * beta * m / (s * b * alpha)).
// All schedules are served by trying lengths, so that steps with a quotient, models of several
// lines and residues need no formula of their own. Host only.

#include <cstdint>
#include <vector>

#include "collectives/predict/predict.h"

namespace espalier::predict {

inline constexpr std::uint32_t kMaxBlockRules = 12;
// A block is never longer, so that no scratch slot is.
inline constexpr std::uint32_t kMaxBlockBytes = 4u << 20;

// Returns the table for the schedule of `first` (any node's program), of at most `max_rules` rows
// (at least 1), with blocks of at most `max_bytes`, a power of two. A schedule that has one block
// for every message keeps its table.
[[nodiscard]] std::vector<BlockRule> block_rules(const Program& first, const StepLengths& lengths,
                                                 const LinkCost& cost, std::uint32_t max_rules,
                                                 std::uint32_t max_bytes = kMaxBlockBytes);

// Replaces the program's table; at most kMaxBlockRules rules.
void set_block_rules(const std::vector<BlockRule>& rules, Program& program);

}  // namespace espalier::predict

#pragma once
// The formulas of proto/schedule.proto, read a second time: exact integer arithmetic, in which
// nothing wraps. Shares no code with collectives/schedule beyond the program's struct.

#include <cstdint>

#include "espalier/internal/proto/schedule.pb.h"

namespace espalier::mutation {

// Rounded down, for a positive divisor.
[[nodiscard]] std::int64_t down(std::int64_t value, std::int64_t by);
// The value of a count for N = blocks.
[[nodiscard]] std::int64_t count_at(const espalier_Count& count, std::int64_t blocks);

// A value that no index of a real program has: the index does not fit 64 bits.
inline constexpr std::int64_t kNotInt64 = INT64_MIN;
// The value of the program's index `at` at instance i, -2^40 < i < 2^40.
[[nodiscard]] std::int64_t index_at(const espalier_Program& program, std::uint32_t at,
                                    std::int64_t i);

}  // namespace espalier::mutation

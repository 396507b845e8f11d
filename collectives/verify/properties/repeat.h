#pragma once
// The constant by which an index advances, for every instance. Internal to collectives/verify.

#include <cstdint>

#include "espalier/collectives/schedule/program.h"

namespace espalier::verify {

// index(i + every) = index(i) + add, for every i for which is_exact() holds. every = 0: no such
// number was found.
struct Repeat {
  std::int64_t every = 1, add = 0;
};
// Larger numbers count as not found. Real schedules stay far below.
inline constexpr std::int64_t kMaxEvery = std::int64_t{1} << 20;

// A divisor of a program: 0 reads as 1.
constexpr std::int64_t or_one(std::uint32_t divisor) { return divisor == 0 ? 1 : divisor; }

[[nodiscard]] Repeat repeat_of(const Program& program, const Index& index);
// Whether no sum in index_value() overflows for any i < instances.
[[nodiscard]] bool is_exact(const Program& program, const Index& index, std::int64_t instances);
// Returns the least common multiple; 0 if it is above kMaxEvery, or if a or b is 0.
[[nodiscard]] std::int64_t common_every(std::int64_t a, std::int64_t b);

}  // namespace espalier::verify

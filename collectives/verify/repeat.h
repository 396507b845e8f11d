#pragma once
// How an index goes on: exactly, for every instance. Internal to collectives/verify.

#include <cstdint>

#include "espalier/collectives/schedule/program.h"

namespace espalier::verify {

// index(i + every) = index(i) + add, for every i up to which the index is exact (is_exact).
// every = 0: no such number was found.
struct Repeat {
  std::int64_t every = 1, add = 0;
};
// Numbers above this count as not found; nothing real is near.
inline constexpr std::int64_t kMostEvery = std::int64_t{1} << 20;

[[nodiscard]] Repeat repeat_of(const Program& program, const Index& index);
// Whether no sum in index_value() overflows for any i < instances.
[[nodiscard]] bool is_exact(const Program& program, const Index& index, std::int64_t instances);
// Least common multiple; 0 if it is above kMostEvery, or one of both is.
[[nodiscard]] std::int64_t common_every(std::int64_t a, std::int64_t b);

}  // namespace espalier::verify

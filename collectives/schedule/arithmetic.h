#pragma once
// Integer arithmetic of counts and indices: floor division, and sums that wrap instead of being
// undefined. A program that check_program accepts reaches a wrap only past 2^31 instances, where
// nothing real lies.

#include <cstdint>

#include "schedule.pb.h"

namespace espalier {

constexpr std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

constexpr std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// d > 0.
constexpr std::int64_t floor_div(std::int64_t n, std::int64_t d) { return n / d - (n % d < 0); }
constexpr std::int64_t floor_mod(std::int64_t n, std::int64_t d) {
  const std::int64_t rest = n % d;
  return rest < 0 ? rest + d : rest;
}
constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t d) { return n / d + (n % d > 0); }

// The lowest `digits` digits of a value >= 0 to this base, the lowest first.
template <typename Integer>
constexpr Integer reverse_digits(Integer value, std::uint32_t base, std::uint32_t digits) {
  Integer reversed = 0;
  for (std::uint32_t digit = 0; digit < digits; ++digit, value /= base) {
    reversed = reversed * base + value % base;
  }
  return reversed;
}

// The outer part of an index: base + floor(sum / div) mod mod.
constexpr std::int64_t finish_index(const espalier_Index& index, std::int64_t sum) {
  if (index.div > 1) sum = floor_div(sum, static_cast<std::int64_t>(index.div));
  if (index.mod != 0) sum = floor_mod(sum, static_cast<std::int64_t>(index.mod));
  return wrapping_add(index.base, sum);
}

}  // namespace espalier

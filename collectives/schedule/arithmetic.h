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

// Divides n by d > 0, and returns the rest. All divisions of 64 bits at run time are this one:
// boards have only one of 32 bits, and the compiler's functions for it take 900 bytes and much
// stack.
std::uint32_t divide(std::uint64_t& n, std::uint32_t d);
[[gnu::always_inline]] inline std::uint32_t divide_bitwise(std::uint64_t& n, std::uint32_t d) {
  std::uint32_t rest = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const bool above = rest >> 31 != 0;  // rest has 33 bits
    rest = rest << 1 | static_cast<std::uint32_t>(n >> 63);
    n <<= 1;
    if (!above && rest < d) continue;
    rest -= d;
    n |= 1;
  }
  return rest;
}
// The same towards minus infinity, so that the rest is not negative; d = 0 reads as 1.
std::uint32_t floor_divide(std::int64_t& n, std::uint32_t d);

// The outer part of an index, but for its base: floor(sum / div) mod mod.
[[nodiscard]] std::int64_t finish_index(const espalier_Index& index, std::int64_t sum);

}  // namespace espalier

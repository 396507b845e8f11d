#pragma once
// Integer arithmetic of counts and indices: floor division, and sums that wrap instead of being
// undefined. Freestanding. A program that check_program accepts wraps only after 2^31 instances,
// more than any real collective has.

#include <cstddef>
#include <cstdint>

#include "espalier/internal/base/assert.h"

namespace espalier {

// Returns a + b modulo 2^64, as a signed number: overflow wraps around.
constexpr std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// Returns a * b modulo 2^64, as a signed number: overflow wraps around.
constexpr std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// as_int() and as_index() convert a value that fits.
constexpr std::int32_t as_int(std::uint32_t value) { return static_cast<std::int32_t>(value); }
constexpr std::size_t as_index(std::int32_t value) { return static_cast<std::size_t>(value); }

// floor_div() returns floor(n / d), floor_mod() n - d * floor(n / d), and ceil_div() ceil(n / d).
// Require d > 0.
constexpr std::int64_t floor_div(std::int64_t n, std::int64_t d) {
  ESPALIER_ASSERT(d > 0);
  return n / d - (n % d < 0);
}
constexpr std::int64_t floor_mod(std::int64_t n, std::int64_t d) {
  ESPALIER_ASSERT(d > 0);
  const std::int64_t rest = n % d;
  return rest < 0 ? rest + d : rest;
}
constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t d) {
  ESPALIER_ASSERT(d > 0);
  return n / d + (n % d > 0);
}

// Returns the number whose `digits` base-`base` digits are the lowest digits of `value` in reverse
// order; value >= 0.
template <typename Integer>
constexpr Integer reverse_digits(Integer value, std::uint32_t base, std::uint32_t digits) {
  Integer reversed = 0;
  for (std::uint32_t digit = 0; digit < digits; ++digit, value /= base) {
    reversed = reversed * base + value % base;
  }
  return reversed;
}

// Divides n by d > 0, and returns the remainder. Every 64-bit division at run time uses this
// function: boards divide 32 bits in hardware only, and the compiler's 64-bit helpers cost 900
// bytes and much stack.
std::uint32_t divide(std::uint64_t& n, std::uint32_t d);
// The same by shifting and subtracting, for targets without a 64-bit division.
[[gnu::always_inline]] inline std::uint32_t divide_bitwise(std::uint64_t& n, std::uint32_t d) {
  std::uint32_t rest = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const bool above = rest >> 31 != 0;  // the doubled remainder has 33 bits
    rest = rest << 1 | static_cast<std::uint32_t>(n >> 63);
    n <<= 1;
    if (!above && rest < d) continue;
    rest -= d;
    n |= 1;
  }
  return rest;
}
// Divides n by d, rounding down, and returns the remainder, which is >= 0; d = 0 reads as 1.
std::uint32_t floor_divide(std::int64_t& n, std::uint32_t d);

}  // namespace espalier

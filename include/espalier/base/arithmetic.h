#pragma once
// Integer arithmetic of counts and indices: floor division, and sums that wrap instead of being
// undefined. A program that check_program() accepts reaches a wrap only beyond 2^31 instances, more
// than any message has. Freestanding.

#include <cstdint>

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

// Returns the lowest `digits` base-`base` digits of a value >= 0 in reverse order.
template <typename Integer>
constexpr Integer reverse_digits(Integer value, std::uint32_t base, std::uint32_t digits) {
  Integer reversed = 0;
  for (std::uint32_t digit = 0; digit < digits; ++digit, value /= base) {
    reversed = reversed * base + value % base;
  }
  return reversed;
}

// Divides n by d > 0 and returns the remainder. Every 64-bit division at run time uses this
// function: boards divide 32 bits in hardware only, and the compiler's 64-bit helpers cost 900
// bytes and much stack.
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
// The same, rounding towards minus infinity, so that the remainder is not negative. d = 0 is taken
// as 1.
std::uint32_t floor_divide(std::int64_t& n, std::uint32_t d);

}  // namespace espalier

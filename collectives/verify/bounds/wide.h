#pragma once
// Integers of 128 bits, for products of the coefficients of bounds, an N and divisors. Compilers
// have them for 64-bit processors only. Host only.

#include <compare>
#include <cstdint>

namespace espalier::verify {

// The arithmetic of __int128 that the verifier needs, with the same results as long as they fit.
class TwoWords {
 public:
  constexpr TwoWords(std::int64_t value)
      : high_(value < 0 ? -1 : 0), low_(static_cast<std::uint64_t>(value)) {}
  // Returns the lowest 64 bits.
  constexpr explicit operator std::int64_t() const { return static_cast<std::int64_t>(low_); }

  friend constexpr auto operator<=>(const TwoWords&, const TwoWords&) = default;
  friend constexpr TwoWords operator+(TwoWords a, TwoWords b) {
    const std::uint64_t low = a.low_ + b.low_;
    return {a.upper() + b.upper() + (low < b.low_ ? 1 : 0), low};
  }
  friend constexpr TwoWords operator-(TwoWords a) {
    return {~a.upper() + (a.low_ == 0 ? 1 : 0), ~a.low_ + 1};
  }
  friend constexpr TwoWords operator-(TwoWords a, TwoWords b) { return a + -b; }
  friend constexpr TwoWords operator*(TwoWords a, TwoWords b) {
    constexpr std::uint64_t kHalf = 0xffffffff;
    const std::uint64_t a0 = a.low_ & kHalf, a1 = a.low_ >> 32;
    const std::uint64_t b0 = b.low_ & kHalf, b1 = b.low_ >> 32;
    const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & kHalf);
    const std::uint64_t carried = a1 * b1 + (middle >> 32) + (other >> 32);
    return {carried + a.low_ * b.upper() + a.upper() * b.low_, a.low_ * b.low_};
  }
  // Rounds towards 0. b != 0.
  friend constexpr TwoWords operator/(TwoWords a, TwoWords b) {
    const bool negative = (a < 0) != (b < 0);
    if (a < 0) a = -a;
    if (b < 0) b = -b;
    TwoWords quotient = 0, rest = 0;
    for (int bit = 127; bit >= 0; --bit) {
      const std::uint64_t word = bit < 64 ? a.low_ : a.upper();
      rest = rest + rest + static_cast<std::int64_t>(word >> (bit & 63) & 1);
      quotient = quotient + quotient;
      if (rest < b) continue;
      rest = rest - b;
      quotient = quotient + 1;
    }
    return negative ? -quotient : quotient;
  }

 private:
  constexpr TwoWords(std::uint64_t high, std::uint64_t low)
      : high_(static_cast<std::int64_t>(high)), low_(low) {}
  [[nodiscard]] constexpr std::uint64_t upper() const { return static_cast<std::uint64_t>(high_); }

  std::int64_t high_;
  std::uint64_t low_;
};

#ifdef __SIZEOF_INT128__
__extension__ using Wide = __int128;
#else
using Wide = TwoWords;
#endif

}  // namespace espalier::verify

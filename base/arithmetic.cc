#include "espalier/internal/base/arithmetic.h"

namespace espalier {

std::uint32_t divide(std::uint64_t& n, std::uint32_t d) {
  ESPALIER_ASSERT(d > 0);
  if (n <= UINT32_MAX) {
    const auto small = static_cast<std::uint32_t>(n);
    n = small / d;
    return small % d;
  }
  if constexpr (sizeof(std::size_t) > 4) {
    const std::uint64_t whole = n;
    n = whole / d;
    return static_cast<std::uint32_t>(whole % d);
  }
  return divide_bitwise(n, d);
}

std::uint32_t floor_divide(std::int64_t& n, std::uint32_t d) {
  if (d <= 1) return 0;
  // floor(n / d) = -1 - floor((-1 - n) / d)
  const bool negative = n < 0;
  auto magnitude = static_cast<std::uint64_t>(negative ? ~n : n);
  const std::uint32_t rest = divide(magnitude, d);
  const auto quotient = static_cast<std::int64_t>(magnitude);
  n = negative ? ~quotient : quotient;
  return negative ? d - 1 - rest : rest;
}

}  // namespace espalier

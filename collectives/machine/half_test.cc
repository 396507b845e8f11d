// f16 and bf16, compared with double.

#include "collectives/machine/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "collectives/machine/testing/combine_one.h"
#include "espalier/collectives/machine/operators.h"

namespace espalier {
namespace {

double value_of(F16 half) {
  const int exponent = (half.bits >> 10) & 31;
  const int mantissa = half.bits & 0x3ff;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  if (exponent == 31) value = mantissa == 0 ? INFINITY : NAN;
  return (half.bits & 0x8000) != 0 ? -value : value;
}

double value_of(Bf16 half) {
  const auto bits = static_cast<std::uint32_t>(half.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Returns the nearest of all 2^16 patterns to a finite value, ties to the even mantissa. Shares no
// bit arithmetic with half.h.
template <typename Half>
std::uint16_t nearest(double value, std::uint16_t infinity) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  std::uint16_t low = 0;
  std::uint16_t high = infinity;  // values ascend with the patterns
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (value_of(Half{middle}) <= magnitude ? low : high) = middle;
  }
  const double below = value_of(Half{low});
  double above = value_of(Half{high});
  // The next number beyond the largest decides what rounds to infinity.
  if (high == infinity) above = 2 * below - value_of(Half{static_cast<std::uint16_t>(low - 1)});
  const double to_low = magnitude - below;
  const double to_high = above - magnitude;
  const bool up = to_high < to_low || (to_high == to_low && (low & 1) != 0);
  return static_cast<std::uint16_t>(sign | (up ? high : low));
}

template <typename Half>
std::uint16_t expected(double value, std::uint16_t infinity, std::uint16_t nan) {
  if (std::isnan(value)) return nan;
  if (std::isinf(value)) return static_cast<std::uint16_t>(infinity | (value < 0 ? 0x8000 : 0));
  return nearest<Half>(value, infinity);
}

// Every pattern against `others`.
template <typename Half>
void check_half(Type type, const std::vector<std::uint16_t>& others, std::uint16_t infinity,
                std::uint16_t nan) {
  for (std::uint32_t x = 0; x <= 0xffff; ++x) {
    for (const std::uint16_t y : others) {
      const Half a{static_cast<std::uint16_t>(x)};
      const Half b{y};
      const double da = value_of(a);
      const double db = value_of(b);
      // The documented result: the f32 result, rounded once more.
      const auto fa = static_cast<float>(da);
      const auto fb = static_cast<float>(db);
      ASSERT_EQ(combine_one(Op::kSum, type, a, b).bits, expected<Half>(fa + fb, infinity, nan))
          << x << " + " << y;
      ASSERT_EQ(combine_one(Op::kProduct, type, a, b).bits, expected<Half>(fa * fb, infinity, nan))
          << x << " * " << y;
      const bool any_nan = std::isnan(da) || std::isnan(db);
      const bool b_smaller = db < da || (db == da && std::signbit(db));
      ASSERT_EQ(combine_one(Op::kMin, type, a, b).bits, any_nan     ? nan
                                                        : b_smaller ? b.bits
                                                                    : a.bits)
          << x << " min " << y;
      ASSERT_EQ(combine_one(Op::kMax, type, a, b).bits, any_nan     ? nan
                                                        : b_smaller ? a.bits
                                                                    : b.bits)
          << x << " max " << y;
    }
  }
}

TEST(Halves, EveryF16AgainstSelectedOnes) {
  check_half<F16>(Type::kF16,
                  {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x3c00, 0xbc01, 0x3555, 0x7bff,
                   0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfd01, 0x1400, 0x1001},
                  0x7c00, kNanF16);
}

TEST(Halves, EveryBf16AgainstSelectedOnes) {
  check_half<Bf16>(Type::kBf16,
                   {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x3f80, 0xbf81, 0x3eab, 0x7f7f,
                    0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xff81, 0x2000},
                   0x7f80, kNanBf16);
}

TEST(Halves, F16SumsAndProductsAreCorrectlyRounded) {
  // f32 has more than twice the digits, so rounding twice is rounding once.
  std::mt19937 random(16);
  for (int i = 0; i < 200'000; ++i) {
    const F16 a{static_cast<std::uint16_t>(random())};
    const F16 b{static_cast<std::uint16_t>(random())};
    const double sum = value_of(a) + value_of(b);
    const double product = value_of(a) * value_of(b);
    ASSERT_EQ(combine_one(Op::kSum, Type::kF16, a, b).bits, expected<F16>(sum, 0x7c00, kNanF16));
    ASSERT_EQ(combine_one(Op::kProduct, Type::kF16, a, b).bits,
              expected<F16>(product, 0x7c00, kNanF16));
  }
}

TEST(Halves, WideningAndNarrowingIsTheIdentity) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const F16 f16{static_cast<std::uint16_t>(bits)};
    const Bf16 bf16{static_cast<std::uint16_t>(bits)};
    const bool nan16 = (bits & 0x7fff) > 0x7c00;
    const bool nan_bf = (bits & 0x7fff) > 0x7f80;
    ASSERT_EQ(narrow_f16(widen(f16)).bits, nan16 ? kNanF16 : bits);
    ASSERT_EQ(narrow_bf16(widen(bf16)).bits, nan_bf ? kNanBf16 : bits);
    if (!nan16) {
      ASSERT_EQ(widen(f16), value_of(f16));
    }
  }
}

}  // namespace
}  // namespace espalier

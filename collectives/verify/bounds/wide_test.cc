// The integers of 128 bits of 32-bit processors.

#include "collectives/verify/bounds/wide.h"

#include <gtest/gtest.h>

#include <random>

namespace espalier::verify {
namespace {

constexpr std::int64_t kLarge = INT64_MAX;

TEST(TwoWords, ComputeBeyond64Bits) {
  const TwoWords square = TwoWords{kLarge} * kLarge;  // 2^126 - 2^64 + 1
  EXPECT_EQ(static_cast<std::int64_t>(square), 1);
  EXPECT_EQ(square / kLarge, kLarge);
  EXPECT_EQ(-square / kLarge, -kLarge);
  EXPECT_EQ(square / -square, -1);
  EXPECT_EQ((square - 1) / kLarge, kLarge - 1);
  EXPECT_EQ((1 - square) / kLarge, 1 - kLarge);
  EXPECT_GT(square, kLarge);
  EXPECT_LT(-square, INT64_MIN);
  EXPECT_EQ(TwoWords{INT64_MIN} + INT64_MIN, TwoWords{INT64_MIN} * 2);
  EXPECT_EQ(TwoWords{kLarge} + 1 - 1, kLarge);
  EXPECT_EQ(-TwoWords{0}, 0);
  EXPECT_EQ(TwoWords{7} / -2, -3);
}

#ifdef __SIZEOF_INT128__
TEST(TwoWords, EqualTheCompilersIntegers) {
  std::mt19937_64 random(1);
  const auto drawn = [&random] {
    const auto number = static_cast<std::int64_t>(random());
    return number >> random() % 64;
  };
  const auto same = [](TwoWords mine, Wide compilers) {
    EXPECT_EQ(static_cast<std::int64_t>(mine), static_cast<std::int64_t>(compilers));
    // The upper half, by another way than the comparison's.
    const Wide upper = compilers >> 32 >> 32;
    constexpr std::int64_t kHalf = std::int64_t{1} << 32;
    const auto low = static_cast<std::uint64_t>(compilers);
    const TwoWords rest = mine - static_cast<std::int64_t>(low % kHalf) -
                          TwoWords{static_cast<std::int64_t>(low / kHalf)} * kHalf;
    EXPECT_EQ(rest, TwoWords{static_cast<std::int64_t>(upper)} * kHalf * kHalf);
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t a = drawn(), b = drawn(), c = drawn(), d = drawn();
    const TwoWords product = TwoWords{a} * b, other = TwoWords{c} * d;
    const Wide wide_product = Wide{a} * b, wide_other = Wide{c} * d;
    same(product, wide_product);
    same(-product, -wide_product);
    same(product + other, wide_product + wide_other);
    same(product - other, wide_product - wide_other);
    EXPECT_EQ(product < other, wide_product < wide_other);
    EXPECT_EQ(product == other, wide_product == wide_other);
    if (c != 0) same(product / c, wide_product / c);
    if (wide_other != 0) same(product / other, wide_product / wide_other);
  }
}
#endif

}  // namespace
}  // namespace espalier::verify

#include "espalier/collectives/machine/operators.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "collectives/machine/half.h"
#include "collectives/machine/testing/combine_one.h"

namespace espalier {
namespace {

template <typename T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// ---- integers, against 128 bits ----

template <typename T>
struct Integer {
  using Number = T;
  static Type type() {
    constexpr bool kSigned = std::is_signed_v<T>;
    switch (sizeof(T)) {
      case 1: return kSigned ? Type::kI8 : Type::kU8;
      case 2: return kSigned ? Type::kI16 : Type::kU16;
      case 4: return kSigned ? Type::kI32 : Type::kU32;
      default: return kSigned ? Type::kI64 : Type::kU64;
    }
  }
};

template <typename T>
class Integers : public ::testing::Test {};
using IntegerTypes = ::testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
                                      std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(Integers, IntegerTypes);

template <typename T>
void check_integers(T a, T b) {
  const Type type = Integer<T>::type();
  const auto wide = [](T x) { return static_cast<std::uint64_t>(x); };  // wraps around
  EXPECT_EQ(combine_one(Op::kSum, type, a, b), static_cast<T>(wide(a) + wide(b)));
  EXPECT_EQ(combine_one(Op::kProduct, type, a, b), static_cast<T>(wide(a) * wide(b)));
  EXPECT_EQ(combine_one(Op::kMin, type, a, b), std::min(a, b));
  EXPECT_EQ(combine_one(Op::kMax, type, a, b), std::max(a, b));
  EXPECT_EQ(combine_one(Op::kAnd, type, a, b), static_cast<T>(a & b));
  EXPECT_EQ(combine_one(Op::kOr, type, a, b), static_cast<T>(a | b));
  EXPECT_EQ(combine_one(Op::kXor, type, a, b), static_cast<T>(a ^ b));
}

TYPED_TEST(Integers, EqualWideReferenceAtTheLimits) {
  using Limits = std::numeric_limits<TypeParam>;
  const TypeParam values[] = {0,
                              1,
                              2,
                              3,
                              static_cast<TypeParam>(-1),
                              Limits::min(),
                              static_cast<TypeParam>(Limits::min() + 1),
                              Limits::max(),
                              static_cast<TypeParam>(Limits::max() - 1)};
  for (const TypeParam a : values) {
    for (const TypeParam b : values) check_integers(a, b);
  }
}

TYPED_TEST(Integers, EqualWideReferenceAtRandom) {
  std::mt19937_64 random(sizeof(TypeParam));
  for (int i = 0; i < 20'000; ++i) {
    check_integers(static_cast<TypeParam>(random()), static_cast<TypeParam>(random()));
  }
}

// ---- f32 and f64 ----

TEST(Floats, RandomBitsEqualTheHardwareButForNan) {
  ASSERT_TRUE(rc::check("f32", [](std::uint32_t x, std::uint32_t y) {
    const auto a = std::bit_cast<float>(x);
    const auto b = std::bit_cast<float>(y);
    const float sum = a + b;
    const float product = a * b;
    const float nan = std::bit_cast<float>(kNanF32);
    RC_ASSERT(same_bits(combine_one(Op::kSum, Type::kF32, a, b), std::isnan(sum) ? nan : sum));
    RC_ASSERT(same_bits(combine_one(Op::kProduct, Type::kF32, a, b),
                        std::isnan(product) ? nan : product));
    const bool any_nan = std::isnan(a) || std::isnan(b);
    RC_ASSERT(same_bits(combine_one(Op::kMin, Type::kF32, a, b), any_nan ? nan : std::fmin(a, b)));
    RC_ASSERT(same_bits(combine_one(Op::kMax, Type::kF32, a, b), any_nan ? nan : std::fmax(a, b)));
  }));
  ASSERT_TRUE(rc::check("f64", [](std::uint64_t x, std::uint64_t y) {
    const auto a = std::bit_cast<double>(x);
    const auto b = std::bit_cast<double>(y);
    const double sum = a + b;
    const double nan = std::bit_cast<double>(kNanF64);
    RC_ASSERT(same_bits(combine_one(Op::kSum, Type::kF64, a, b), std::isnan(sum) ? nan : sum));
    const bool any_nan = std::isnan(a) || std::isnan(b);
    RC_ASSERT(same_bits(combine_one(Op::kMax, Type::kF64, a, b), any_nan ? nan : std::fmax(a, b)));
  }));
}

template <typename T>
void check_special_values(Type type) {
  const T infinity = std::numeric_limits<T>::infinity();
  const T nan = std::numeric_limits<T>::quiet_NaN();
  T odd_nan = std::copysign(nan, T{-1});
  const T tiny = std::numeric_limits<T>::denorm_min();
  for (const Op op : {Op::kSum, Op::kProduct, Op::kMin, Op::kMax}) {
    EXPECT_TRUE(same_bits(combine_one<T>(op, type, odd_nan, 1), nan)) << op_name(op);
    EXPECT_TRUE(same_bits(combine_one<T>(op, type, 1, odd_nan), nan)) << op_name(op);
  }
  EXPECT_TRUE(same_bits(combine_one<T>(Op::kSum, type, infinity, -infinity), nan));
  EXPECT_TRUE(same_bits(combine_one<T>(Op::kProduct, type, infinity, 0), nan));
  EXPECT_TRUE(same_bits(combine_one<T>(Op::kSum, type, tiny, tiny), 2 * tiny));
  EXPECT_TRUE(same_bits<T>(combine_one<T>(Op::kMin, type, T{0}, -T{0}), -T{0}));
  EXPECT_TRUE(same_bits<T>(combine_one<T>(Op::kMin, type, -T{0}, T{0}), -T{0}));
  EXPECT_TRUE(same_bits<T>(combine_one<T>(Op::kMax, type, T{0}, -T{0}), T{0}));
  EXPECT_TRUE(same_bits<T>(combine_one<T>(Op::kMax, type, -T{0}, T{0}), T{0}));
}

TEST(Floats, SpecialValues) {
  check_special_values<float>(Type::kF32);
  check_special_values<double>(Type::kF64);
}

// ---- pairs ----

template <typename Value, typename Index>
struct Pair {
  Value value;
  Index index;
};

template <typename Value, typename Index>
void check_pairs(Type type) {
  using P = Pair<Value, Index>;
  const auto check = [type](Op op, P a, P b, P want) {
    const P got = combine_one(op, type, a, b);
    EXPECT_TRUE(same_bits(got.value, want.value)) << type_name(type) << " " << op_name(op);
    EXPECT_EQ(got.index, want.index) << type_name(type) << " " << op_name(op);
  };
  check(Op::kMinLoc, {3, 7}, {5, 1}, {3, 7});
  check(Op::kMinLoc, {5, 1}, {3, 7}, {3, 7});
  check(Op::kMaxLoc, {3, 7}, {5, 1}, {5, 1});
  check(Op::kMinLoc, {-3, 7}, {-3, 2}, {-3, 2});
  check(Op::kMaxLoc, {-3, 2}, {-3, 7}, {-3, 2});
  check(Op::kMaxLoc, {-3, -2}, {-3, 7}, {-3, -2});
  if constexpr (std::is_floating_point_v<Value>) {
    const Value nan = std::numeric_limits<Value>::quiet_NaN();
    check(Op::kMinLoc, {nan, 9}, {1, 2}, {nan, 9});
    check(Op::kMaxLoc, {1, 2}, {-nan, 9}, {nan, 9});
    check(Op::kMaxLoc, {nan, 9}, {-nan, 4}, {nan, 4});
    check(Op::kMinLoc, {0, 1}, {-Value{0}, 5}, {-Value{0}, 5});
    check(Op::kMaxLoc, {-Value{0}, 1}, {0, 5}, {0, 5});
  }
}

TEST(Locations, SmallerIndexOfEqualValues) {
  check_pairs<std::int32_t, std::int32_t>(Type::kI32Loc);
  check_pairs<float, std::int32_t>(Type::kF32Loc);
  check_pairs<std::int64_t, std::int64_t>(Type::kI64Loc);
  check_pairs<double, std::int64_t>(Type::kF64Loc);
}

TEST(Locations, AssociateAndCommute) {
  using P = Pair<float, std::int32_t>;
  ASSERT_TRUE(
      rc::check([](std::array<std::uint8_t, 3> values, std::array<std::int8_t, 3> positions) {
        const float table[] = {0.f, -0.f, 1.f, -1.f, NAN, -NAN, INFINITY, 0.5f};
        P x[3];
        for (int i = 0; i < 3; ++i) x[i] = {table[values[i] % 8], positions[i]};
        for (const Op op : {Op::kMinLoc, Op::kMaxLoc}) {
          const auto f = [op](P a, P b) { return combine_one(op, Type::kF32Loc, a, b); };
          RC_ASSERT(same_bits(f(f(x[0], x[1]), x[2]), f(x[0], f(x[1], x[2]))));
          RC_ASSERT(same_bits(f(x[0], x[1]), f(x[1], x[0])));
        }
      }));
}

// ---- the table ----

TEST(Operators, WhatGoesTogether) {
  for (int type = 0; type <= 17; ++type) {
    for (int op = 0; op <= 10; ++op) {
      Operator oper{.op = static_cast<Op>(op), .type = static_cast<Type>(type), .element_bytes = 3};
      const bool custom = oper.op == Op::kCustom;
      const bool integer = type >= 1 && type <= 8;
      const bool floating = type >= 9 && type <= 12;
      const bool pair = type >= 13 && type <= 16;
      const bool arithmetic = op >= 1 && op <= 4;
      const bool bits = op >= 5 && op <= 7;
      const bool location = op == 8 || op == 9;
      const bool good =
          (integer && (arithmetic || bits)) || (floating && arithmetic) || (pair && location);
      EXPECT_EQ(can_combine(oper), good) << type << " " << op;
      oper.custom = [](void*, const void*, const void*, std::uint64_t, void*) {};
      EXPECT_EQ(can_combine(oper), good || custom) << type << " " << op;
    }
  }
}

TEST(Operators, SizesAndNames) {
  const std::uint32_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 8, 16, 16, 5};
  for (int i = 0; i <= 17; ++i) {
    Operator op{.type = static_cast<Type>(i), .element_bytes = 5};
    EXPECT_EQ(element_bytes(op), sizes[i]);
    Type type = Type::kCustom;
    EXPECT_TRUE(parse_type(type_name(op.type), type));
    EXPECT_EQ(type, op.type);
  }
  for (int i = 0; i <= 10; ++i) {
    Op op = Op::kNone;
    EXPECT_TRUE(parse_op(op_name(static_cast<Op>(i)), op));
    EXPECT_EQ(op, static_cast<Op>(i));
  }
  Type type = Type::kI8;
  Op op = Op::kSum;
  for (const char* name : {"", "f", "f321", "F32", "unknown"}) {
    EXPECT_FALSE(parse_type(name, type));
    EXPECT_FALSE(parse_op(name, op));
  }
  EXPECT_EQ(type, Type::kI8);
  EXPECT_EQ(op, Op::kSum);
  Operator unknown{.type = static_cast<Type>(99)};
  EXPECT_EQ(element_bytes(unknown), 0u);
  EXPECT_FALSE(can_combine(unknown));
  EXPECT_STREQ(type_name(unknown.type), "unknown");
}

TEST(Operators, InPlaceEitherWayAndAnyLength) {
  for (const Type type : {Type::kF32, Type::kI16, Type::kF64, Type::kU8}) {
    Operator op{.op = Op::kSum, .type = type};
    const std::uint32_t size = element_bytes(op);
    for (std::uint64_t count = 0; count < 70; ++count) {
      // One element after an aligned address, as blocks are.
      std::vector<std::uint8_t> a((count + 2) * size, 0);
      std::vector<std::uint8_t> b((count + 2) * size, 0);
      std::mt19937 random(static_cast<unsigned>(count));
      for (std::size_t i = size; i < (count + 1) * size; ++i) {
        a[i] = static_cast<std::uint8_t>(random() % 64);
        b[i] = static_cast<std::uint8_t>(random() % 64);
      }
      std::vector<std::uint8_t> apart(a.size(), 0);
      std::vector<std::uint8_t> into_a = a;
      std::vector<std::uint8_t> into_b = b;
      combine(op, apart.data() + size, a.data() + size, b.data() + size, count);
      combine(op, into_a.data() + size, into_a.data() + size, b.data() + size, count);
      combine(op, into_b.data() + size, a.data() + size, into_b.data() + size, count);
      ASSERT_EQ(apart, into_a) << type_name(type) << " " << count;
      ASSERT_EQ(apart, into_b) << type_name(type) << " " << count;
    }
  }
}

}  // namespace
}  // namespace espalier

#include "tools/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

namespace espalier::reference {
namespace {

template <typename T>
std::vector<T> input_of(const Case& run, std::uint32_t rank, std::uint32_t repetition) {
  std::vector<std::uint8_t> bytes(run.bytes);
  fill_input(run, rank, repetition, bytes.data());
  std::vector<T> values(run.bytes / sizeof(T));
  std::memcpy(values.data(), bytes.data(), run.bytes);
  return values;
}

template <typename T>
std::vector<T> expected_of(const Case& run, std::uint32_t repetition) {
  const std::vector<std::uint8_t> bytes = expected(run, repetition);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Case reduction(Op op, Type type, std::uint32_t ranks, std::uint64_t bytes) {
  return {espalier_Collective_ALLREDUCE, ranks, 0, op, type, bytes};
}

// Combining the inputs in any order gives the expected bits: forwards, backwards and by halves.
template <typename T, typename Combine>
void check_any_order(Op op, Type type, std::uint32_t ranks, Combine combine) {
  const Case run = reduction(op, type, ranks, 512 * sizeof(T));
  std::string error;
  ASSERT_TRUE(supported(run, error)) << error;
  for (std::uint32_t repetition = 0; repetition < 2; ++repetition) {
    const std::vector<T> wanted = expected_of<T>(run, repetition);
    std::vector<std::vector<T>> inputs;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      inputs.push_back(input_of<T>(run, rank, repetition));
    }
    bool varied = false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      T forwards = inputs[0][i];
      for (std::uint32_t rank = 1; rank < ranks; ++rank) {
        forwards = combine(forwards, inputs[rank][i]);
      }
      T backwards = inputs[ranks - 1][i];
      for (std::uint32_t rank = ranks - 1; rank-- > 0;) {
        backwards = combine(inputs[rank][i], backwards);
      }
      ASSERT_EQ(std::memcmp(&forwards, &wanted[i], sizeof(T)), 0) << "element " << i;
      ASSERT_EQ(std::memcmp(&backwards, &wanted[i], sizeof(T)), 0) << "element " << i;
      varied = varied || wanted[i] != wanted[0];
    }
    EXPECT_TRUE(varied) << "a constant result shows nothing";
  }
}

TEST(Reference, FloatsAreExactInAnyOrder) {
  for (const std::uint32_t ranks : {2u, 16u, 100u}) {
    check_any_order<float>(Op::kSum, Type::kF32, ranks, [](float a, float b) { return a + b; });
    check_any_order<double>(Op::kSum, Type::kF64, ranks, [](double a, double b) { return a + b; });
    check_any_order<float>(Op::kProduct, Type::kF32, ranks, [](float a, float b) { return a * b; });
    check_any_order<float>(Op::kMin, Type::kF32, ranks,
                           [](float a, float b) { return a < b ? a : b; });
  }
}

TEST(Reference, IntegersWrapAround) {
  check_any_order<std::int32_t>(Op::kSum, Type::kI32, 16, [](int a, int b) { return a + b; });
  check_any_order<std::uint8_t>(Op::kSum, Type::kU8, 16, [](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(a + b);
  });
  check_any_order<std::uint64_t>(Op::kProduct, Type::kU64, 16,
                                 [](std::uint64_t a, std::uint64_t b) { return a * b; });
  check_any_order<std::int8_t>(Op::kMax, Type::kI8, 16,
                               [](std::int8_t a, std::int8_t b) { return a > b ? a : b; });
  check_any_order<std::uint16_t>(Op::kXor, Type::kU16, 16, [](std::uint16_t a, std::uint16_t b) {
    return static_cast<std::uint16_t>(a ^ b);
  });
}

// The bits of a half or bfloat16 as a number.
double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10 & 31) - 25;
  const int fraction = (bits & 1023) | ((bits >> 10 & 31) != 0 ? 1024 : 0);
  return ((bits & 0x8000) != 0 ? -1 : 1) * std::ldexp(fraction, exponent);
}

double bfloat_value(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

TEST(Reference, SmallFloatsAreExactSumsOfTheirInputs) {
  for (const Type type : {Type::kF16, Type::kBf16}) {
    const Case run = reduction(Op::kSum, type, 20, 1024);
    const auto value = type == Type::kF16 ? half_value : bfloat_value;
    const auto wanted = expected_of<std::uint16_t>(run, 3);
    std::set<double> seen;
    std::vector<double> sums(wanted.size());
    for (std::uint32_t rank = 0; rank < run.ranks; ++rank) {
      const auto input = input_of<std::uint16_t>(run, rank, 3);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += value(input[i]);
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(value(wanted[i]), sums[i]) << "element " << i;
      seen.insert(sums[i]);
    }
    EXPECT_GT(seen.size(), 10u);
  }
}

TEST(Reference, NoBlockLooksLikeAnother) {
  const Case run{espalier_Collective_BROADCAST, 4, 2, Op::kNone, Type::kBytes, 1 << 16};
  std::set<std::vector<std::uint8_t>> blocks;
  for (std::uint32_t repetition = 0; repetition < 3; ++repetition) {
    const std::vector<std::uint8_t> bytes = expected(run, repetition);
    for (std::size_t at = 0; at < bytes.size(); at += 64) {
      const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      EXPECT_TRUE(blocks.insert({from, from + 64}).second);
    }
  }
}

TEST(Reference, RefusesWhatItCannotCheck) {
  std::string error;
  EXPECT_FALSE(supported(reduction(Op::kMinLoc, Type::kF32Loc, 4, 64), error));
  error.clear();
  EXPECT_FALSE(supported(reduction(Op::kAnd, Type::kF32, 4, 64), error));
  error.clear();
  EXPECT_FALSE(supported(reduction(Op::kSum, Type::kF32, 4, 63), error));
  EXPECT_NE(error.find("multiple of 4"), std::string::npos) << error;
  error.clear();
  EXPECT_FALSE(supported(reduction(Op::kSum, Type::kBf16, 200, 64), error));
  error.clear();
  EXPECT_TRUE(supported({espalier_Collective_BROADCAST, 3, 0, Op::kNone, Type::kBytes, 7}, error));
  EXPECT_TRUE(supported(reduction(Op::kSum, Type::kBf16, 20, 64), error)) << error;
}

TEST(Reference, KnowsWhoHasWhat) {
  const Case broadcast{espalier_Collective_BROADCAST, 3, 1, Op::kNone, Type::kBytes, 8};
  const Case reduce{espalier_Collective_REDUCE, 3, 1, Op::kSum, Type::kF32, 8};
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(has_input(broadcast, rank), rank == 1);
    EXPECT_EQ(has_result(broadcast, rank), rank != 1);
    EXPECT_TRUE(has_input(reduce, rank));
    EXPECT_EQ(has_result(reduce, rank), rank == 1);
  }
}

}  // namespace
}  // namespace espalier::reference

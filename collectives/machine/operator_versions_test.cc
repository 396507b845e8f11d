// Every version of every operator gives the same bits, at any length and address, on every target.

#include "collectives/machine/operator_versions.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "base/digest.h"
#include "collectives/machine/testing/operator_numbers.h"
#include "espalier/internal/base/little_endian.h"
#include "tests/bare/operator_digests.h"
#include "tests/whole.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Operator> all_operators() {
  std::vector<Operator> all;
  for (std::uint8_t type = 0; type < static_cast<std::uint8_t>(Type::kCustom); ++type) {
    for (std::uint8_t op = 1; op < static_cast<std::uint8_t>(Op::kCustom); ++op) {
      Operator one{.op = static_cast<Op>(op), .type = static_cast<Type>(type)};
      if (can_combine(one)) all.push_back(one);
    }
  }
  return all;
}

std::vector<Version> all_versions() {
  std::vector<Version> all;
  for (const Version version : kVersions) {
    if (version <= best_version()) all.push_back(version);
  }
  return all;
}

std::string name_of(const Operator& op, Version version) {
  return std::string(op_name(op.op)) + " " + type_name(op.type) + ", " + version_name(version);
}

TEST(OperatorVersions, OfThisProcessor) {
  for (const Version version : kVersions) {
    std::printf("%s: %s\n", version_name(version),
                version <= best_version() ? "tested" : "not tested, this processor has none");
  }
}

// The digests of tests/bare/operators.cc, which every target has.
TEST(OperatorVersions, HaveTheDigestsOfAllTargets) {
  constexpr std::size_t kElements = 512;
  Bytes left(kElements * 16), right(kElements * 16);
  fill_operand(left.data(), left.size(), 0);
  fill_operand(right.data(), right.size(), 1);
  const std::vector<Operator> operators = all_operators();
  ASSERT_EQ(operators.size(), std::size(kOperatorDigests));
  for (const Version version : all_versions()) {
    for (std::size_t row = 0; row < operators.size(); ++row) {
      const Operator& op = operators[row];
      const std::size_t bytes = kElements * element_bytes(op);
      Bytes into(bytes);
      combine_by(version, op, into.data(), left.data(), right.data(), kElements);
      std::uint64_t digest = digest_bytes(kDigestSeed, into.data(), bytes);
      std::memcpy(into.data(), right.data(), bytes);
      combine_by(version, op, into.data(), into.data(), left.data(), kElements);
      digest = digest_bytes(digest, into.data(), bytes);
      EXPECT_EQ(digest, kOperatorDigests[row]) << name_of(op, version);
    }
  }
}

constexpr std::size_t kRegister = 64;                 // bytes of the largest vector register
constexpr std::size_t kMaxCount = 2 * kRegister + 3;  // two registers of the smallest elements
constexpr std::size_t kArena = (kMaxCount + 3) * 16 + kRegister;
alignas(kRegister) std::uint8_t arenas[3][kArena];  // of the result, a and b

// Checks `version` with its result apart, in place of a and in place of b, and that it writes
// nothing else. offsets: elements between a register's boundary and the result, a and b.
void check_places(Version version, const Operator& op, std::size_t count,
                  const std::size_t (&offsets)[3], const Bytes& left, const Bytes& right) {
  const std::size_t size = element_bytes(op);
  Bytes result(kArena);
  combine_by(Version::kBaseline, op, result.data(), left.data(), right.data(), count);
  for (std::size_t place = 0; place < 3; ++place) {
    std::memset(arenas, 0xa5, sizeof arenas);
    std::uint8_t* const a = arenas[1] + offsets[1] * size;
    std::uint8_t* const b = arenas[2] + offsets[2] * size;
    std::uint8_t* const into = arenas[place] + offsets[place] * size;
    std::memcpy(a, left.data(), count * size);
    std::memcpy(b, right.data(), count * size);
    Bytes want(arenas[place], arenas[place] + kArena);
    std::memcpy(want.data() + offsets[place] * size, result.data(), count * size);
    combine_by(version, op, into, a, b, count);
    ASSERT_EQ(std::memcmp(arenas[place], want.data(), kArena), 0)
        << name_of(op, version) << ": " << count << " elements, offsets " << offsets[0] << ", "
        << offsets[1] << ", " << offsets[2] << ", into operand " << place;
  }
}

TEST(OperatorVersions, AreEqualAtEveryLengthAndAddress) {
  Bytes left(kMaxCount * 16 + 8), right(kMaxCount * 16 + 8);
  fill_operand(left.data(), left.size() / 8 * 8, 2);
  fill_operand(right.data(), right.size() / 8 * 8, 3);
  constexpr std::size_t kOffsets[][3] = {{0, 0, 0}, {1, 1, 1}, {0, 1, 2}, {3, 0, 1}, {1, 2, 0}};
  for (const Version version : all_versions()) {
    for (const Operator& op : all_operators()) {
      const std::size_t step = small_sample() ? 5 : 1;
      for (std::size_t count = 0; count <= kMaxCount; count += step) {
        for (const auto& offsets : kOffsets) {
          check_places(version, op, count, offsets, left, right);
        }
      }
    }
  }
}

TEST(OperatorVersions, AreEqualForRandomNumbers) {
  const std::size_t bytes = small_sample() ? 1 << 14 : 1 << 20;
  Bytes left(bytes), right(bytes), want(bytes), into(bytes);
  const std::uint64_t seed = sample_seed();
  fill_operand(left.data(), bytes, seed);
  fill_operand(right.data(), bytes, seed + 1);
  for (const Operator& op : all_operators()) {
    const std::size_t count = bytes / element_bytes(op);
    combine_by(Version::kBaseline, op, want.data(), left.data(), right.data(), count);
    for (const Version version : all_versions()) {
      combine_by(version, op, into.data(), left.data(), right.data(), count);
      EXPECT_EQ(into, want) << name_of(op, version);
    }
    combine(op, into.data(), left.data(), right.data(), count);
    EXPECT_EQ(into, want) << name_of(op, best_version());
  }
}

// Every f16 and bf16 with zeros, subnormals, infinities, NaNs and numbers whose results are ties.
// The digests are of an x86-64 host.
struct HalfDigest {
  Type type;
  Op op;
  std::uint64_t digest;
};
constexpr HalfDigest kHalfDigests[] = {
    {Type::kF16, Op::kSum, 0x144f50a6be5ec955},  {Type::kF16, Op::kProduct, 0x3801abd060d0492d},
    {Type::kF16, Op::kMin, 0x6ca397c56df9f039},  {Type::kF16, Op::kMax, 0x3c929cec75e15f85},
    {Type::kBf16, Op::kSum, 0x345aede76c863d7d}, {Type::kBf16, Op::kProduct, 0xb8f7ec2b1fdce26d},
    {Type::kBf16, Op::kMin, 0x50297545f9dd84a9}, {Type::kBf16, Op::kMax, 0x89098499893ce851},
};

TEST(OperatorVersions, AreEqualForEveryHalf) {
  constexpr std::uint16_t kOthers[] = {
      0x0000, 0x0001, 0x0002, 0x0003, 0x007f, 0x0080, 0x0081, 0x03fe, 0x03ff, 0x0400, 0x0401,
      0x0800, 0x1001, 0x1400, 0x2000, 0x3001, 0x3555, 0x3800, 0x3bff, 0x3c00, 0x3c01, 0x3e00,
      0x3eab, 0x3f80, 0x3f81, 0x4000, 0x4248, 0x63ff, 0x6800, 0x7800, 0x7bfe, 0x7bff, 0x7c00,
      0x7c01, 0x7d55, 0x7e00, 0x7f7e, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0x7fff};
  constexpr std::size_t kHalves = 0x10000;
  std::vector<std::uint16_t> every(kHalves), other(kHalves), want(kHalves), into(kHalves);
  for (std::size_t i = 0; i < kHalves; ++i) every[i] = little(static_cast<std::uint16_t>(i));
  for (const HalfDigest& row : kHalfDigests) {
    Operator op;
    op.op = row.op;
    op.type = row.type;
    std::uint64_t digest = kDigestSeed;
    for (std::size_t i = 0; i < 2 * std::size(kOthers); ++i) {
      const std::uint16_t sign = i % 2 == 0 ? 0 : 0x8000;
      other.assign(kHalves, little(static_cast<std::uint16_t>(kOthers[i / 2] | sign)));
      combine_by(Version::kBaseline, op, want.data(), every.data(), other.data(), kHalves);
      digest = digest_bytes(digest, want.data(), kHalves * 2);
      for (const Version version : all_versions()) {
        combine_by(version, op, into.data(), every.data(), other.data(), kHalves);
        EXPECT_EQ(into, want) << name_of(op, version) << ", " << other[0];
        combine_by(version, op, into.data(), other.data(), every.data(), kHalves);
        EXPECT_EQ(into, want) << name_of(op, version) << ", " << other[0] << " first";
      }
    }
    EXPECT_EQ(digest, row.digest) << op_name(op.op) << " " << type_name(op.type);
  }
}

}  // namespace
}  // namespace espalier

#include "espalier/internal/base/little_endian.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace espalier {
namespace {

template <typename T>
std::array<std::uint8_t, sizeof(T)> bytes_of(const T& value) {
  std::array<std::uint8_t, sizeof(T)> bytes{};
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

TEST(LittleEndian, ReversesBytes) {
  EXPECT_EQ(reversed<std::uint8_t>(0xf1), 0xf1);
  EXPECT_EQ(reversed<std::uint16_t>(0x01f2), 0xf201);
  EXPECT_EQ(reversed<std::int32_t>(0x010203fe), static_cast<std::int32_t>(0xfe030201));
  EXPECT_EQ(reversed<std::uint64_t>(0x0102030405060708), 0x0807060504030201u);
  EXPECT_EQ(reversed(reversed<std::int64_t>(-2)), -2);
}

enum class Kind : std::uint32_t { kRun = 0x01020304 };

struct Packet {
  Little<Kind> kind = Kind::kRun;
  Little<std::uint16_t> port = 0x0506;
  std::uint8_t last[2] = {7, 8};
  Little<std::int64_t> step = -2;
};

// On targets of either order.
TEST(LittleEndian, StructsHaveTheSameBytesOnEveryTarget) {
  static_assert(sizeof(Packet) == 16);
  const std::array<std::uint8_t, 16> expected = {4,    3,    2,    1,    6,    5,    7,    8,
                                                 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  EXPECT_EQ(bytes_of(Packet{}), expected);
}

// Where Little is the plain type, too.
TEST(LittleEndian, NumbersConvertAndCount) {
  LittleEndian<std::uint32_t> number = 0x010203ff;
  EXPECT_EQ(bytes_of(number), (std::array<std::uint8_t, 4>{0xff, 3, 2, 1}));
  ++number;
  EXPECT_EQ(number, 0x01020400u);
  number += 0x100;
  EXPECT_EQ(bytes_of(number), (std::array<std::uint8_t, 4>{0, 5, 2, 1}));
  LittleEndian<Kind> kind = Kind::kRun;
  EXPECT_EQ(bytes_of(kind), (std::array<std::uint8_t, 4>{4, 3, 2, 1}));
  EXPECT_EQ(kind, Kind::kRun);
}

}  // namespace
}  // namespace espalier

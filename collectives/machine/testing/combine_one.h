#pragma once
// Test helper: combines one element with a built-in operator. Its numbers have this machine's byte
// order.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "espalier/collectives/machine/operators.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {

// Converts an element of `numbers` numbers to little-endian order or back.
template <typename T>
T little_element(T element, std::size_t numbers) {
  if constexpr (kIsLittleEndian) return element;
  auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(element);
  const auto size = static_cast<std::ptrdiff_t>(sizeof(T) / numbers);
  for (auto at = bytes.begin(); at != bytes.end(); at += size) std::reverse(at, at + size);
  return std::bit_cast<T>(bytes);
}

template <typename T>
T combine_one(Op op, Type type, T a, T b) {
  Operator oper{.op = op, .type = type};
  EXPECT_TRUE(can_combine(oper)) << op_name(op) << " " << type_name(type);
  const std::size_t numbers = type >= Type::kI32Loc && type <= Type::kF64Loc ? 2 : 1;
  a = little_element(a, numbers);
  b = little_element(b, numbers);
  T into{};
  combine(oper, &into, &a, &b, 1);
  return little_element(into, numbers);
}

}  // namespace espalier

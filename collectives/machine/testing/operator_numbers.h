#pragma once
// Test helper: operands for every type of the operators. Freestanding.

#include <cstddef>
#include <cstdint>

#include "base/splitmix64.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {

// Bits of zeros, infinities, NaNs, the smallest and largest numbers, 1, and values that need
// rounding, in f16, bf16, f32 and f64: the upper 16 bits first, then the lower ones.
inline constexpr std::uint64_t kSpecialNumbers[] = {
    0x0000000000000000, 0x8000000000000000, 0x7ff0000000000000, 0xfff0000000000000,
    0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 0x0000000000000001,
    0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
    0x3ff0000000000000, 0xbff0000000000001, 0x7f8000007f800001, 0xff80000000800000,
    0x7fc000007f7fffff, 0x807fffff00000001, 0x7c007c017bff0400, 0xfc00fe0003ff0001,
    0x3c003c01bc008001, 0x7f807f817f7f0080, 0xff80ffc0007f0001, 0x3f803f81bf808001};

// Returns 8 bytes of an operand, the left one with seed 0. One number in four is special; every
// pair of two specials occurs. Two in four have nearby exponents.
inline std::uint64_t operand_number(std::uint64_t at, std::uint64_t seed) {
  constexpr std::uint64_t kCount = sizeof kSpecialNumbers / sizeof kSpecialNumbers[0];
  const std::uint64_t drawn = splitmix64(at * 2 + seed);
  if (at % 4 == 0) return kSpecialNumbers[(seed == 0 ? at / 4 : at / 4 / kCount + at / 4) % kCount];
  return at % 4 == 1 ? drawn : (drawn & 0x83ff83ff83ff83ff) | 0x3c003c003c003c00;
}

// Fills `size` bytes, a multiple of 8, with little-endian numbers.
inline void fill_operand(std::uint8_t* bytes, std::size_t size, std::uint64_t seed) {
  for (std::size_t i = 0; i < size / 8; ++i) {
    store_le(bytes + i * 8, operand_number(i, seed), 8);
  }
}

}  // namespace espalier

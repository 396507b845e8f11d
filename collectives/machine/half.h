#pragma once
// The 16-bit floating-point formats, by integer code: to f32 exactly, from f32 rounded to nearest
// even with subnormals kept. Freestanding, bitwise the same everywhere.

#include <bit>
#include <cstdint>

namespace espalier {

inline constexpr std::uint32_t kNanF32 = 0x7fc00000u;
inline constexpr std::uint64_t kNanF64 = 0x7ff8000000000000ull;
inline constexpr std::uint16_t kNanF16 = 0x7e00u;
inline constexpr std::uint16_t kNanBf16 = 0x7fc0u;

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 mantissa.
struct F16 {
  std::uint16_t bits;
};
// The upper half of a binary32.
struct Bf16 {
  std::uint16_t bits;
};

constexpr float widen(F16 half) {
  const std::uint32_t sign = (half.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (half.bits >> 10) & 31;
  const std::uint32_t mantissa = half.bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  // A subnormal is mantissa * 2^-24, which f32 holds exactly.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

constexpr float widen(Bf16 half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half.bits) << 16);
}

// value / 2^shift, rounded to nearest, ties to even. 0 < shift < 32.
constexpr std::uint32_t round_shift(std::uint32_t value, std::uint32_t shift) {
  const std::uint32_t half = (std::uint32_t{1} << (shift - 1)) - 1;
  return (value + half + ((value >> shift) & 1)) >> shift;
}

constexpr F16 narrow_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    return {kNanF16};
  } else if (magnitude >= 0x47800000u) {  // 2^16 and more, infinity
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14: normal; a carry runs up into the exponent
    half = round_shift(magnitude, 13) - (112u << 10);
  } else if (magnitude >= 0x33000000u) {  // 2^-25: subnormal, in units of 2^-24
    const std::uint32_t shift = 126 - (magnitude >> 23);
    half = round_shift((magnitude & 0x7fffffu) | 0x800000u, shift);
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

constexpr Bf16 narrow_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {kNanBf16};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16)};
}

}  // namespace espalier

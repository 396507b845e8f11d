#pragma once
// The 16-bit floating-point formats. Conversion to f32 is exact; conversion from f32 rounds to
// nearest even and keeps subnormals. Freestanding; the bits are the same on every target.

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
// bfloat16: the upper half of an IEEE 754 binary32.
struct Bf16 {
  std::uint16_t bits;
};

// Converts to f32, without branches.
constexpr float widen(F16 half) {
  const std::uint32_t sign = (half.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = half.bits & 0x7fffu;
  // A subnormal is magnitude * 2^-24, which f32 holds exactly.
  const float small = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(small);
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  const std::uint32_t special = normal + (112u << 23);  // infinity and NaN
  const std::uint32_t finite = magnitude < 0x0400u ? subnormal : normal;
  return std::bit_cast<float>(sign | (magnitude < 0x7c00u ? finite : special));
}

constexpr float widen(Bf16 half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half.bits) << 16);
}

// Converts f32 to f16.
constexpr F16 narrow_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Rounds to nearest even at bit 13. A carry propagates into the exponent, and turns the largest
  // number into infinity.
  const std::uint32_t normal =
      ((magnitude + 0xfffu + ((magnitude >> 13) & 1)) >> 13) - (112u << 10);
  // Below 2^-14 the unit of f16 is 2^-24, the same as the unit of f32 in 1/2 .. 1: the sum rounds.
  const float sum = std::bit_cast<float>(magnitude) + 0.5f;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(sum) - 0x3f000000u;
  const std::uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  const std::uint32_t number = sign | (magnitude < 0x47800000u ? finite : 0x7c00u);
  return {static_cast<std::uint16_t>(magnitude > 0x7f800000u ? kNanF16 : number)};
}

// Converts f32 to bf16.
constexpr Bf16 narrow_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t number = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? kNanBf16 : number)};
}

}  // namespace espalier

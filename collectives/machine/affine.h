#pragma once
// An operator whose results show the order of combining: the composition of affine maps
// x -> a*x + b modulo 2^32. It is associative and does not commute. An element is {a, b}, 32 bits
// each.

#include <cstdint>
#include <cstring>

#include "espalier/collectives/machine/operators.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {

inline constexpr std::uint32_t kAffineBytes = 8;
inline constexpr std::uint32_t kAffineId = 1;  // Operator::custom_id

// Applies the left operand's map first: (a, b) (+) (c, d) = (a*c, b*c + d).
inline void combine_affine(void* into, const void* left, const void* right, std::uint64_t count,
                           void* /*context*/) {
  for (std::uint64_t i = 0; i < count; ++i) {
    Little<std::uint32_t> first[2];
    Little<std::uint32_t> second[2];
    std::memcpy(first, static_cast<const char*>(left) + i * kAffineBytes, kAffineBytes);
    std::memcpy(second, static_cast<const char*>(right) + i * kAffineBytes, kAffineBytes);
    const Little<std::uint32_t> composed[2] = {first[0] * second[0],
                                               first[1] * second[0] + second[1]};
    std::memcpy(static_cast<char*>(into) + i * kAffineBytes, composed, kAffineBytes);
  }
}

[[nodiscard]] inline Operator affine() {
  Operator op;
  op.op = Op::kCustom;
  op.type = Type::kCustom;
  op.commutes = false;
  op.element_bytes = kAffineBytes;
  op.custom_id = kAffineId;
  op.custom = combine_affine;
  return op;
}

}  // namespace espalier

#pragma once
// Loads and stores numbers in files and images: little-endian on every target, at any address.
// Freestanding.

#include <cstdint>

namespace espalier {

// Returns the number in the 2 bytes that begin at `bytes`.
[[nodiscard]] inline std::uint16_t load_u16(const std::uint8_t* bytes) {
  return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
}

// Returns the number in the 4 bytes that begin at `bytes`. This is one instruction on targets with
// unaligned access; the compiler recognizes that only after inlining.
[[nodiscard, gnu::always_inline]] inline std::uint32_t load_u32(const std::uint8_t* bytes) {
  return static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8 |
         static_cast<std::uint32_t>(bytes[2]) << 16 | static_cast<std::uint32_t>(bytes[3]) << 24;
}

// Returns the number in the 8 bytes that begin at `bytes`.
[[nodiscard]] inline std::uint64_t load_u64(const std::uint8_t* bytes) {
  return load_u32(bytes) | static_cast<std::uint64_t>(load_u32(bytes + 4)) << 32;
}

// Stores `value` in the 4 bytes that begin at `bytes`.
inline void store_u32(std::uint8_t* bytes, std::uint32_t value) {
  bytes[0] = static_cast<std::uint8_t>(value);
  bytes[1] = static_cast<std::uint8_t>(value >> 8);
  bytes[2] = static_cast<std::uint8_t>(value >> 16);
  bytes[3] = static_cast<std::uint8_t>(value >> 24);
}

// Stores the lowest `size` bytes of `value`, size <= 8.
inline void store_le(std::uint8_t* bytes, std::uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

}  // namespace espalier

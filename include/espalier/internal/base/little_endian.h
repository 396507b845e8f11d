#pragma once
// Loads and stores numbers in files, images, packets and messages: little-endian on every target,
// at any address. Freestanding.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

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

// Returns the number whose bytes are those of `value` in reverse order.
template <typename T>
[[nodiscard]] constexpr T reversed(T value) {
  static_assert(std::is_integral_v<T> && sizeof(T) <= 8);
  std::uint64_t result = 0;
  auto rest = static_cast<std::uint64_t>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i, rest >>= 8) result = result << 8 | (rest & 0xff);
  return static_cast<T>(result);
}

#ifdef ESPALIER_OTHER_BYTE_ORDER
#define ESPALIER_CODE_OF_OTHER_BYTE_ORDER true
#else
#define ESPALIER_CODE_OF_OTHER_BYTE_ORDER false
#endif
// Whether this target is little-endian: numbers in its memory are as they are outside. A test that
// is compiled with ESPALIER_OTHER_BYTE_ORDER has the code of targets with the other order.
inline constexpr bool kIsLittleEndian =
    (std::endian::native == std::endian::little) != ESPALIER_CODE_OF_OTHER_BYTE_ORDER;

// Returns the number whose bytes in memory are those of `value` in little-endian order. Twice: the
// same number again.
template <typename T>
[[nodiscard]] constexpr T little(T value) {
  if constexpr (kIsLittleEndian) return value;
  return reversed(value);
}

// A number with the bytes of a little-endian one, which converts to and from T.
template <typename T>
class LittleEndian {
 public:
  LittleEndian() = default;
  // Converts a number to these bytes.
  constexpr LittleEndian(T value) : stored_(little(static_cast<Number>(value))) {}
  // Converts the bytes to the number.
  constexpr operator T() const { return static_cast<T>(little(stored_)); }
  // Adds to the number.
  constexpr LittleEndian& operator+=(T value) { return *this = static_cast<T>(*this + value); }
  // Adds 1.
  constexpr LittleEndian& operator++() { return *this += 1; }

 private:
  template <typename Integer, bool kIsEnum>
  struct NumberOf {
    using Type = Integer;
  };
  template <typename Enum>
  struct NumberOf<Enum, true> {
    using Type = std::underlying_type_t<Enum>;
  };
  using Number = typename NumberOf<T, std::is_enum_v<T>>::Type;
  Number stored_;
};

// The type of a number in a struct whose bytes leave the process.
template <typename T>
using Little = std::conditional_t<kIsLittleEndian, T, LittleEndian<T>>;

}  // namespace espalier

#pragma once
// Reading enumerators of decoded messages. Freestanding.

#include <cstdint>
#include <cstring>

namespace espalier {

// Returns an enumerator's value before it is checked: a decoded enum may hold any value, so it is
// read as bytes. Static: on the Cortex-M3 an inline function would take 48 bytes more.
template <typename Enum>
static std::uint32_t raw_enumerator(const Enum& value) {
  if constexpr (sizeof(Enum) == 1) {
    std::uint8_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  } else {
    static_assert(sizeof(Enum) == 4);
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  }
}

}  // namespace espalier

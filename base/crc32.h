#pragma once
// CRC-32 (IEEE 802.3, reflected) of files, and of blocks on links without a checksum of their own.
// Freestanding.

#include <cstddef>
#include <cstdint>

namespace espalier {

// Continues a CRC over `size` further bytes and returns it. `crc`: the CRC of the bytes before; 0
// at the start.
[[nodiscard]] std::uint32_t crc32(std::uint32_t crc, const void* bytes, std::size_t size);

}  // namespace espalier

#include "espalier/base/crc32.h"

namespace espalier {

std::uint32_t crc32(std::uint32_t crc, const void* bytes, std::size_t size) {
  // Four bits at a time: 64 bytes of table, small enough for any flash.
  static constexpr std::uint32_t kTable[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                               0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                               0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                               0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  const auto* next = static_cast<const std::uint8_t*>(bytes);
  crc = ~crc;
  for (std::size_t i = 0; i < size; ++i) {
    crc ^= next[i];
    crc = (crc >> 4) ^ kTable[crc & 15];
    crc = (crc >> 4) ^ kTable[crc & 15];
  }
  return ~crc;
}

}  // namespace espalier

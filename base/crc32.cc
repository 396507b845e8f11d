#include "base/crc32.h"

#include "espalier/internal/base/little_endian.h"

#if __STDC_HOSTED__
#include <array>
#endif

namespace espalier {

#if __STDC_HOSTED__
namespace {

// Eight bytes at a time: 8 KiB of tables, several times as fast as the other (Kounavis and Berry,
// "Novel Table Lookup-Based Algorithms for High-Performance CRC Generation", 2008).
// kTables[k][value] is the register after the byte `value` and k bytes of zeros.
constexpr auto kTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t value = 0; value < 256; ++value) {
    std::uint32_t crc = value;
    for (auto& table : tables) {
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
      table[value] = crc;
    }
  }
  return tables;
}();

}  // namespace

std::uint32_t crc32(std::uint32_t crc, const void* bytes, std::size_t size) {
  const auto* next = static_cast<const std::uint8_t*>(bytes);
  crc = ~crc;
  for (; size >= 8; size -= 8, next += 8) {
    const std::uint32_t low = crc ^ load_u32(next);
    const std::uint32_t high = load_u32(next + 4);
    crc = kTables[7][low & 255] ^ kTables[6][low >> 8 & 255] ^ kTables[5][low >> 16 & 255] ^
          kTables[4][low >> 24] ^ kTables[3][high & 255] ^ kTables[2][high >> 8 & 255] ^
          kTables[1][high >> 16 & 255] ^ kTables[0][high >> 24];
  }
  for (; size > 0; --size, ++next) crc = (crc >> 8) ^ kTables[0][(crc ^ *next) & 255];
  return ~crc;
}

#else

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

#endif

}  // namespace espalier

#pragma once
// Schedule files whose lengths, offsets and checksums a fuzz target corrects, so that the code
// behind these checks is reached too.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/crc32.h"
#include "espalier/collectives/schedule/file.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::fuzz {

// Sizes of the header, and of the table's row of a node.
inline constexpr std::size_t kFileHeader = 44, kFileRow = 16;

// Makes the file as file.h describes. Keeps nodes, ranks, spec and the descriptors' lengths as far
// as they fit.
inline void put_right(std::vector<std::uint8_t>& file) {
  constexpr std::uint32_t kMaxSpec = 255, kUsualSpec = 64;
  if (file.size() < kFileHeader + kFileRow + 8) return;
  std::memcpy(file.data(), kScheduleMagic, sizeof kScheduleMagic);
  store_le(&file[8], kScheduleFileVersion, 4);
  std::size_t spec = load_u32(&file[40]);
  if (spec > kMaxSpec) spec %= kUsualSpec;
  spec = std::min(spec, file.size() - kFileHeader - kFileRow - 8);
  store_le(&file[40], spec, 4);
  const std::size_t table = (kFileHeader + spec + 7) / 8 * 8;
  const std::size_t nodes =
      std::clamp<std::size_t>(load_u32(&file[16]), 1, (file.size() - table) / kFileRow);
  store_le(&file[16], nodes, 4);
  store_le(&file[32], file.size(), 8);
  std::size_t next = table + nodes * kFileRow;
  for (std::size_t node = 0; node < nodes; ++node) {
    std::uint8_t* row = &file[table + node * kFileRow];
    std::size_t length = std::min<std::size_t>(load_u32(row + 8) % 4096, file.size() - next);
    if (node + 1 == nodes) length = file.size() - next;
    store_le(row, next, 8);
    store_le(row + 8, length, 4);
    store_le(row + 12, crc32(0, file.data() + next, length), 4);
    next += length;
  }
  store_le(&file[12], crc32(0, &file[16], table + nodes * kFileRow - 16), 4);
}

}  // namespace espalier::fuzz

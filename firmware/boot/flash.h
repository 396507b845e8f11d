#pragma once
// A node's flash memory. Freestanding.
//
//  * Reading: bytes are read in place; images and their tables are never copied.
//  * Erasing a block sets its bytes to 0xff.
//  * Writing: a unit is written as a whole, at most once after each erase.
//  * Power may fail at any time. The unit being written, or the block being erased, then reads as
//    arbitrary bytes. All other bytes are unchanged.

#include <cstdint>

#include "espalier/base/status.h"

namespace espalier {

inline constexpr std::uint32_t kMaxFlashUnit = 64;
// Blocks that the counters and two slots take at least.
inline constexpr std::uint32_t kMinFlashBlocks = 6;

class Flash {
 public:
  [[nodiscard]] virtual const std::uint8_t* memory() const = 0;  // bytes() bytes
  [[nodiscard]] virtual std::uint32_t bytes() const = 0;         // a multiple of block_bytes()
  [[nodiscard]] virtual std::uint32_t block_bytes() const = 0;   // a multiple of unit_bytes()
  [[nodiscard]] virtual std::uint32_t unit_bytes() const = 0;    // 1 .. kMaxFlashUnit
  // Erases the block that begins at `offset`. kBackEnd: the flash failed; the block reads as after
  // a power failure.
  [[nodiscard]] virtual Status erase(std::uint32_t offset) = 0;
  // Writes `size` bytes to whole, erased units; `offset` is the beginning of a unit. kBackEnd: the
  // flash failed; the units read as after a power failure.
  [[nodiscard]] virtual Status write(std::uint32_t offset, const std::uint8_t* bytes,
                                     std::uint32_t size) = 0;

 protected:
  ~Flash() = default;  // never deleted through the base: no heap
};

}  // namespace espalier

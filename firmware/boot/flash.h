#pragma once
// Flash memory as a node sees it. Freestanding.
//
// Bytes are read where they lie (execute-in-place: images and their tables are never copied).
// Erasing a block sets its bytes to 0xff; a unit is written whole, at most once after each erase.
// Power may go at any time: a unit that was being written, or a block that was being erased, then
// reads as anything, and everything else as it was.

#include <cstdint>

#include "espalier/base/status.h"

namespace espalier {

inline constexpr std::uint32_t kMaxFlashUnit = 64;

class Flash {
 public:
  [[nodiscard]] virtual const std::uint8_t* memory() const = 0;  // of bytes() bytes
  [[nodiscard]] virtual std::uint32_t bytes() const = 0;         // a multiple of block_bytes()
  [[nodiscard]] virtual std::uint32_t block_bytes() const = 0;   // a multiple of unit_bytes()
  [[nodiscard]] virtual std::uint32_t unit_bytes() const = 0;    // 1 .. kMaxFlashUnit
  // Erases the block that begins at `offset`. kBackEnd: the flash refused.
  [[nodiscard]] virtual Status erase(std::uint32_t offset) = 0;
  // Writes `size` bytes, whole units, at a unit's beginning, all erased. kBackEnd: the flash
  // refused, and the units are as if power had gone.
  [[nodiscard]] virtual Status write(std::uint32_t offset, const std::uint8_t* bytes,
                                     std::uint32_t size) = 0;

 protected:
  ~Flash() = default;  // never deleted through the base: no heap
};

}  // namespace espalier

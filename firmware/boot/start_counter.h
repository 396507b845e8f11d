#pragma once
// Counts the starts of a board in flash, for session() of firmware/bare/board.h: on boards without
// a source of random numbers. Freestanding.
//
// Two blocks take turns. Each entry is a number and its complement, in whole units of the flash. A
// full block is erased only after the other one has a higher number, so power may fail at any time:
// the next number is higher than all that were returned before.

#include <cstdint>

#include "firmware/boot/flash.h"

namespace espalier {

class StartCounter {
 public:
  // Two blocks of `flash`, which begin at `offset` and belong to nothing else.
  StartCounter(Flash& flash, std::uint32_t offset) : flash_(flash), offset_(offset) {}

  // Stores the number of this start, at least 1, and returns it in `number`. kBackEnd: the flash
  // failed, and the number may be that of the next start too.
  [[nodiscard]] Status next(std::uint32_t& number);

 private:
  [[nodiscard]] std::uint32_t entry_bytes() const;
  [[nodiscard]] std::uint32_t entries() const { return flash_.block_bytes() / entry_bytes(); }
  [[nodiscard]] const std::uint8_t* entry(std::uint32_t block, std::uint32_t index) const;
  // Returns the highest number of a block, or 0. first_free: the entry after the last that is not
  // erased.
  [[nodiscard]] std::uint32_t highest(std::uint32_t block, std::uint32_t& first_free) const;

  Flash& flash_;
  std::uint32_t offset_;
};

}  // namespace espalier

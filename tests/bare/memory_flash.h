#pragma once
// Flash in memory, for tests. Refuses operations that real flash cannot do.

#include <cstring>

#include "firmware/boot/flash.h"
#include "tests/bare/check.h"

namespace espalier {

class MemoryFlash final : public Flash {
 public:
  MemoryFlash() { std::memset(cells_, 0xff, sizeof cells_); }
  [[nodiscard]] const std::uint8_t* memory() const override { return cells_; }
  [[nodiscard]] std::uint32_t bytes() const override { return sizeof cells_; }
  [[nodiscard]] std::uint32_t block_bytes() const override { return kBlock; }
  [[nodiscard]] std::uint32_t unit_bytes() const override { return kUnit; }
  [[nodiscard]] Status erase(std::uint32_t offset) override {
    CHECK_EQ(offset % kBlock, 0u);
    std::memset(cells_ + offset, 0xff, kBlock);
    return Status::kOk;
  }
  [[nodiscard]] Status write(std::uint32_t offset, const std::uint8_t* bytes,
                             std::uint32_t size) override {
    CHECK(offset % kUnit == 0 && size % kUnit == 0);
    bool erased = true;
    for (std::uint32_t k = 0; k < size; ++k) erased = erased && cells_[offset + k] == 0xff;
    CHECK(erased);
    std::memcpy(cells_ + offset, bytes, size);
    return Status::kOk;
  }

 private:
  static constexpr std::uint32_t kBlock = 4096, kUnit = 16, kBlocks = 8;
  std::uint8_t cells_[kBlocks * kBlock];
};

}  // namespace espalier

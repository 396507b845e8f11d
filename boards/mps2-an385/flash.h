#pragma once
// The emulated flash: the board's PSRAM, whose contents live in a file of the emulator's host, read
// at boot and written through. Each erase and write has reached the host's file before the next
// begins, so they survive resets and a killed emulator in their order.

#include <cstdint>

#include "firmware/boot/flash.h"

namespace espalier {

class EmulatedFlash final : public Flash {
 public:
  // Reads the file; false: it cannot be used, or has not exactly bytes() bytes. The flash is then
  // blank and refuses every erase and write.
  [[nodiscard]] bool open(const char* path);
  void close();

  [[nodiscard]] const std::uint8_t* memory() const override;
  [[nodiscard]] std::uint32_t bytes() const override { return ESPALIER_FLASH_BYTES; }
  [[nodiscard]] std::uint32_t block_bytes() const override { return ESPALIER_FLASH_BLOCK_BYTES; }
  [[nodiscard]] std::uint32_t unit_bytes() const override { return ESPALIER_FLASH_UNIT_BYTES; }
  [[nodiscard]] Status erase(std::uint32_t offset) override;
  [[nodiscard]] Status write(std::uint32_t offset, const std::uint8_t* bytes,
                             std::uint32_t size) override;

 private:
  [[nodiscard]] Status put(std::uint32_t offset, std::uint32_t size) const;
  std::uint32_t file_ = 0;  // its handle and 1; 0: none
};

}  // namespace espalier

#pragma once
// The emulated flash: the board's PSRAM, with a file of the emulator's host as its permanent
// contents. The file is read at boot. Each erase and write reaches the file before the next one
// begins, so a reset or a killed emulator loses none of the earlier ones.

#include <cstdint>

#include "firmware/boot/flash.h"

namespace espalier {

class EmulatedFlash final : public Flash {
 public:
  // Reads the file. False if it cannot be opened for writing or does not have exactly bytes()
  // bytes: the flash is then blank, and every erase and write fails.
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
  std::uint32_t file_ = 0;  // the file's handle plus 1; 0: no file
};

}  // namespace espalier

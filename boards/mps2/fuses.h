#pragma once
// The emulated fuses: one-time programmable bits, with a file of the emulator's host as their
// contents. Each bit reaches the file before burn() returns.

#include "firmware/boot/security_counter.h"

namespace espalier {

class EmulatedFuses final : public OneTimeBits {
 public:
  // Opens the file. False if it cannot be opened for writing or does not have 1 to kMaxBytes bytes:
  // every read and burn() fails then, so no image boots.
  [[nodiscard]] bool open(const char* path);
  void close();

  [[nodiscard]] std::uint32_t bytes() const override { return bytes_; }
  [[nodiscard]] Status read(std::uint32_t index, std::uint8_t& byte) const override;
  [[nodiscard]] Status burn(std::uint32_t bit) override;

 private:
  static constexpr std::uint32_t kMaxBytes = 4096;
  int file_ = -1;
  std::uint32_t bytes_ = 1;
};

}  // namespace espalier

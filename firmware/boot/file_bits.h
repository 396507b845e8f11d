#pragma once
// One-time programmable bits that are a file: the stand-in for the fuses of a board. Host only. The
// class never clears a bit; a file is no fuse, though, and who can write it can.

#include <string>

#include "espalier/base/result.h"
#include "firmware/boot/security_counter.h"

namespace espalier {

class FileBits final : public OneTimeBits {
 public:
  FileBits() = default;
  FileBits(const FileBits&) = delete;
  FileBits& operator=(const FileBits&) = delete;
  ~FileBits();

  // Opens the file, of 1 to kMaxBytes bytes; zeros are bits that are not set.
  [[nodiscard]] Result<void> open(const std::string& path);

  [[nodiscard]] std::uint32_t bytes() const override { return bytes_; }
  [[nodiscard]] Status read(std::uint32_t index, std::uint8_t& byte) const override;
  // Returns when the bit is on the disk.
  [[nodiscard]] Status burn(std::uint32_t bit) override;

  static constexpr std::uint32_t kMaxBytes = 4096;

 private:
  int file_ = -1;
  std::uint32_t bytes_ = 0;
};

}  // namespace espalier

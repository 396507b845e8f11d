#include "boards/mps2/fuses.h"

#include "boards/mps2/semihost.h"

namespace espalier {

bool EmulatedFuses::open(const char* path) {
  const int file = semihost::open(path, semihost::Mode::kUpdate);
  const int size = file >= 0 ? semihost::length(file) : 0;
  const bool good = size >= 1 && static_cast<std::uint32_t>(size) <= kMaxBytes;
  if (good) {
    file_ = file;
    bytes_ = static_cast<std::uint32_t>(size);
  } else if (file >= 0) {
    semihost::close(file);
  }
  return good;
}

void EmulatedFuses::close() {
  if (file_ >= 0) semihost::close(file_);
  file_ = -1;
}

Status EmulatedFuses::read(std::uint32_t index, std::uint8_t& byte) const {
  return file_ >= 0 && semihost::read(file_, index, &byte, 1) ? Status::kOk : Status::kBackEnd;
}

Status EmulatedFuses::burn(std::uint32_t bit) {
  std::uint8_t byte = 0;
  if (read(bit / 8, byte) != Status::kOk) return Status::kBackEnd;
  byte = static_cast<std::uint8_t>(byte | 1u << bit % 8);
  return semihost::write(file_, bit / 8, &byte, 1) ? Status::kOk : Status::kBackEnd;
}

}  // namespace espalier

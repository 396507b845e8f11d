#include "boards/mps2/flash.h"

#include <cstring>

#include "boards/mps2/semihost.h"

namespace espalier {
namespace {

[[gnu::section(".slots")]] std::uint8_t cells[ESPALIER_FLASH_BYTES];

}  // namespace

const std::uint8_t* EmulatedFlash::memory() const { return cells; }

bool EmulatedFlash::open(const char* path) {
  const int file = semihost::open(path, semihost::Mode::kUpdate);
  bool good = file >= 0 && semihost::length(file) == static_cast<int>(sizeof cells) &&
              semihost::read(file, 0, cells, sizeof cells);
  if (good) {
    file_ = static_cast<std::uint32_t>(file) + 1;
  } else {
    memset(cells, 0xff, sizeof cells);
    if (file >= 0) semihost::close(file);
  }
  return good;
}

void EmulatedFlash::close() {
  if (file_ != 0) semihost::close(static_cast<int>(file_ - 1));
  file_ = 0;
}

Status EmulatedFlash::put(std::uint32_t offset, std::uint32_t size) const {
  const bool good =
      file_ != 0 && semihost::write(static_cast<int>(file_ - 1), offset, cells + offset, size);
  return good ? Status::kOk : Status::kBackEnd;
}

Status EmulatedFlash::erase(std::uint32_t offset) {
  if (file_ == 0) return Status::kBackEnd;
  memset(cells + offset, 0xff, ESPALIER_FLASH_BLOCK_BYTES);
  return put(offset, ESPALIER_FLASH_BLOCK_BYTES);
}

Status EmulatedFlash::write(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t size) {
  if (file_ == 0) return Status::kBackEnd;
  for (std::uint32_t k = 0; k < size; ++k) {
    if (cells[offset + k] != 0xff) return Status::kBackEnd;  // not erased
  }
  memcpy(cells + offset, bytes, size);
  return put(offset, size);
}

}  // namespace espalier

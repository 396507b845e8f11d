#include "firmware/boot/file_bits.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/counted.h"

namespace espalier {

FileBits::~FileBits() {
  if (file_ >= 0) close(file_);
}

Result<void> FileBits::open(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    return espalier::fail("cannot use the one-time bits " + path + ": " + why);
  };
  struct stat about {};
  file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file_ < 0 || fstat(file_, &about) != 0) return fail(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) return fail("it is not a regular file");
  if (about.st_size < 1 || about.st_size > static_cast<off_t>(kMaxBytes)) {
    return fail("it has " + counted(about.st_size, "byte") + "; expected 1 to " +
                std::to_string(kMaxBytes));
  }
  bytes_ = static_cast<std::uint32_t>(about.st_size);
  return {};
}

Status FileBits::read(std::uint32_t index, std::uint8_t& byte) const {
  return pread(file_, &byte, 1, static_cast<off_t>(index)) == 1 ? Status::kOk : Status::kBackEnd;
}

Status FileBits::burn(std::uint32_t bit) {
  std::uint8_t byte = 0;
  const std::uint32_t index = bit / 8;
  if (index >= bytes_ || read(index, byte) != Status::kOk) return Status::kBackEnd;
  byte = static_cast<std::uint8_t>(byte | 1u << bit % 8);
  const bool written =
      pwrite(file_, &byte, 1, static_cast<off_t>(index)) == 1 && fdatasync(file_) == 0;
  return written ? Status::kOk : Status::kBackEnd;
}

}  // namespace espalier

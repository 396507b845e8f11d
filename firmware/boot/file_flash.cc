#include "firmware/boot/file_flash.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace espalier {
namespace {

bool write_all(int file, std::uint32_t offset, const std::uint8_t* bytes, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t written =
        pwrite(file, bytes + done, size - done, static_cast<off_t>(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return fdatasync(file) == 0;
}

}  // namespace

std::uint32_t image_room(std::uint32_t bytes, std::uint32_t block_bytes) {
  const std::uint32_t blocks = bytes / block_bytes;
  return blocks < 6 ? 0 : ((blocks - 2) / 2 - 1) * block_bytes;
}

FileFlash::~FileFlash() {
  if (memory_ != nullptr) munmap(memory_, shape_.bytes);
  if (file_ >= 0) close(file_);
}

Result<void> FileFlash::open(const std::string& path, const FlashShape& shape, bool create) {
  shape_ = shape;
  struct stat about {};
  const auto fail = [&](const std::string& why) {
    return espalier::fail("cannot use the flash " + path + ": " + why);
  };
  file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0666);
  if (file_ < 0 || fstat(file_, &about) != 0) return fail(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) return fail("it is not a regular file");
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) return fail("another process has opened it");
  if (create && about.st_size == 0) {
    const std::vector<std::uint8_t> erased(shape.bytes, 0xff);
    if (!write_all(file_, 0, erased.data(), erased.size())) return fail(std::strerror(errno));
  } else if (about.st_size != static_cast<off_t>(shape.bytes)) {
    return fail("it has " + std::to_string(about.st_size) + " bytes; expected " +
                std::to_string(shape.bytes));
  }
  void* memory = mmap(nullptr, shape.bytes, PROT_READ, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) return fail(std::strerror(errno));
  memory_ = static_cast<std::uint8_t*>(memory);
  return {};
}

Status FileFlash::put(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t size) {
  return write_all(file_, offset, bytes, size) ? Status::kOk : Status::kBackEnd;
}

Status FileFlash::erase(std::uint32_t offset) {
  const std::vector<std::uint8_t> erased(shape_.block_bytes, 0xff);
  return put(offset, erased.data(), shape_.block_bytes);
}

Status FileFlash::write(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t size) {
  const std::uint8_t* units = memory_ + offset;
  if (std::any_of(units, units + size, [](std::uint8_t byte) { return byte != 0xff; })) {
    return Status::kBackEnd;
  }
  return put(offset, bytes, size);
}

}  // namespace espalier

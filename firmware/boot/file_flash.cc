#include "firmware/boot/file_flash.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/counted.h"

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

// Reads up to `size` bytes from `offset` on; returns how many the file has there, or -1 and errno.
ssize_t read_all(int file, std::size_t offset, std::uint8_t* bytes, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t received =
        pread(file, bytes + done, size - done, static_cast<off_t>(offset + done));
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return -1;
    if (received == 0) break;
    done += static_cast<std::size_t>(received);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

bool is_flash_shape(const FlashShape& shape) {
  const std::uint32_t unit = shape.unit_bytes, block = shape.block_bytes;
  return unit != 0 && unit <= kMaxFlashUnit && block != 0 && block % unit == 0 &&
         shape.bytes % block == 0 && shape.bytes / block >= kMinFlashBlocks;
}

std::uint32_t image_room(std::uint32_t bytes, std::uint32_t block_bytes) {
  const std::uint32_t blocks = bytes / block_bytes;
  return blocks < kMinFlashBlocks ? 0 : ((blocks - 2) / 2 - 1) * block_bytes;
}

FileFlash::~FileFlash() {
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
    return fail("it has " + counted(about.st_size, "byte") + "; expected " +
                std::to_string(shape.bytes));
  }
  memory_.resize(shape.bytes);
  const ssize_t size = read_all(file_, 0, memory_.data(), memory_.size());
  if (size < 0) return fail(std::strerror(errno));
  if (size == static_cast<ssize_t>(memory_.size())) return {};
  return fail("it was made shorter while it was read; expected " + counted(shape.bytes, "byte"));
}

bool FileFlash::is_unchanged() const {
  struct stat about {};
  if (fstat(file_, &about) != 0 || about.st_size != static_cast<off_t>(memory_.size())) {
    return false;
  }
  std::uint8_t piece[65536];
  for (std::size_t at = 0; at < memory_.size(); at += sizeof piece) {
    const std::size_t size = std::min(sizeof piece, memory_.size() - at);
    if (read_all(file_, at, piece, size) != static_cast<ssize_t>(size)) return false;
    if (std::memcmp(piece, memory_.data() + at, size) != 0) return false;
  }
  return true;
}

// A mark that confirms the image in memory_ must not get into another one.
Status FileFlash::put(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t size) {
  if (!is_unchanged()) return Status::kBackEnd;
  const bool written = write_all(file_, offset, bytes, size);
  if (written) {
    std::copy(bytes, bytes + size, memory_.data() + offset);
  } else {
    (void)read_all(file_, offset, memory_.data() + offset, size);  // part of it may be written
  }
  return written ? Status::kOk : Status::kBackEnd;
}

Status FileFlash::erase(std::uint32_t offset) {
  const std::vector<std::uint8_t> erased(shape_.block_bytes, 0xff);
  return put(offset, erased.data(), shape_.block_bytes);
}

Status FileFlash::write(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t size) {
  const std::uint8_t* units = memory_.data() + offset;
  if (std::any_of(units, units + size, [](std::uint8_t byte) { return byte != 0xff; })) {
    return Status::kBackEnd;
  }
  return put(offset, bytes, size);
}

}  // namespace espalier

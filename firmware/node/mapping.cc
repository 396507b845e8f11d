#include "firmware/node/mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>

namespace espalier::node {
namespace {

// Whether the file has these bytes: an access beyond its end would end the process.
bool has_bytes(int descriptor, std::uint64_t offset, std::uint64_t size) {
  struct stat about {};
  if (fstat(descriptor, &about) != 0) return false;
  const auto bytes = static_cast<std::uint64_t>(about.st_size);
  errno = EINVAL;
  return offset <= bytes && size <= bytes - offset;
}

}  // namespace

Mapping::~Mapping() { unmap(); }

void Mapping::unmap() {
  if (bytes_ != nullptr) munmap(bytes_, size_);
  bytes_ = nullptr;
  size_ = 0;
}

bool Mapping::map(std::uint64_t size, int descriptor, std::uint64_t offset, bool writable) {
  unmap();
  if (size == 0) return true;
  if (descriptor >= 0 && !has_bytes(descriptor, offset, size)) return false;
  if (static_cast<std::size_t>(size) != size) {  // on targets of 32 bits
    errno = ENOMEM;
    return false;
  }
  // Populate now, so that no page fault delays a collective.
  const int flags = MAP_POPULATE | (descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
  const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* bytes = mmap(nullptr, size, access, flags, descriptor, static_cast<off_t>(offset));
  if (bytes == MAP_FAILED) return false;
  bytes_ = bytes;
  size_ = size;
  return true;
}

}  // namespace espalier::node

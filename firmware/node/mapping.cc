#include "firmware/node/mapping.h"

#include <sys/mman.h>

namespace espalier::node {

Mapping::~Mapping() { unmap(); }

void Mapping::unmap() {
  if (bytes_ != nullptr) munmap(bytes_, size_);
  bytes_ = nullptr;
  size_ = 0;
}

bool Mapping::map(std::uint64_t size, int descriptor, std::uint64_t offset, bool writable) {
  unmap();
  if (size == 0) return true;
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

#pragma once
// A file in memory, for parsers that open a path.

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/fuzz/expect.h"

namespace espalier::fuzz {

// A file with these contents, which only its owner may read.
class MemoryFile {
 public:
  MemoryFile(const void* bytes, std::size_t size)
      : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    expect(descriptor_ >= 0 && fchmod(descriptor_, 0600) == 0 &&
               write(descriptor_, bytes, size) == static_cast<ssize_t>(size),
           "the host has memory for the input");
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace espalier::fuzz

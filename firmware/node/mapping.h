#pragma once
// Memory from the kernel, fresh or of a file. Host only.

#include <cstdint>

namespace espalier::node {

// One mapping, which the destructor unmaps.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
  // Unmaps the previous mapping and maps `size` bytes: fresh memory if descriptor < 0, otherwise
  // that file from byte `offset` onward. The pages are populated before map() returns. False and
  // errno on failure: EINVAL if the file is shorter, ENOMEM if the address space is.
  [[nodiscard]] bool map(std::uint64_t size, int descriptor, std::uint64_t offset, bool writable);
  void unmap();
  [[nodiscard]] void* bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  void* bytes_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace espalier::node

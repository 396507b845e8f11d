#pragma once
// This process's memory that other processes of the host may read: what allocate()
// (include/espalier/internal/hal/mem/allocate.h) gives. Host only.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::mem {

// What is mapped apart begins at a multiple of this: the largest page that a processor here has.
inline constexpr std::size_t kPageBytes = 65536;

// One file without a name, of as many bytes as the host has memory, mapped whole. Pages that are
// not allocated take no memory.
class SharedMemory {
 public:
  // Returns that of this process; makes it at the first call, and after a fork. Null: the system
  // gives none.
  [[nodiscard]] static SharedMemory* of_process();
  // As of_process(), the memory of its endpoints' segments (hal/mem/host/segment.h), which other
  // processes write.
  [[nodiscard]] static SharedMemory* of_segments();
  // Returns the shared memory of of_process() that has this address, of this process or of a
  // process that forked it; null: none.
  [[nodiscard]] static SharedMemory* with(const void* bytes);

  [[nodiscard]] void* allocate(std::size_t bytes);
  // False, with nothing done: the bytes are not of allocate(), or were given back before.
  [[nodiscard]] bool deallocate(void* bytes);

  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const std::uint8_t* bytes() const { return memory_; }
  // Whether all of these bytes are in it.
  [[nodiscard]] bool contains(const void* bytes, std::uint64_t size) const {
    const auto at = reinterpret_cast<std::uintptr_t>(bytes);
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_);
    return at >= begin && at - begin <= size_ && size <= size_ - (at - begin);
  }
  [[nodiscard]] std::uint64_t offset_of(const void* bytes) const {
    return static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(bytes) - memory_);
  }

 private:
  SharedMemory() = default;
  [[nodiscard]] static SharedMemory* newest(std::vector<SharedMemory*>& list, const char* name);
  [[nodiscard]] static SharedMemory* make(const char* name);

  pid_t process_ = 0;
  int file_ = -1;
  std::uint8_t* memory_ = nullptr;
  std::size_t size_ = 0;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_, taken_;  // sizes by offset
};

// Gives memory of espalier::allocate() back. Error, with nothing freed: it is not, or no longer.
[[nodiscard]] Result<void> give_back(void* bytes);

}  // namespace espalier::mem

#pragma once
// Memory for arrays that grow with the nodes, and prefetching. Host only.
//
// The arrays use large pages if the system has them. With small pages, random access waits longer
// for address translation than for the data.

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace espalier::sim {

template <typename T>
class LargeAllocator {
 public:
  using value_type = T;
  LargeAllocator() = default;
  template <typename U>
  explicit(false) LargeAllocator(const LargeAllocator<U>& /*other*/) {}

  [[nodiscard]] T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* const memory = ::operator new(bytes, alignment(bytes));
    // Only a hint: without large pages only time is lost.
    if (bytes >= kLargePage) (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    ::operator delete(memory, alignment(count * sizeof(T)));
  }
  friend bool operator==(const LargeAllocator&, const LargeAllocator&) { return true; }

 private:
  static constexpr std::size_t kLargePage = std::size_t{1} << 21;
  static constexpr std::size_t kLine = std::max<std::size_t>(64, alignof(T));
  static std::align_val_t alignment(std::size_t bytes) {
    return std::align_val_t{bytes >= kLargePage ? kLargePage : kLine};
  }
};

template <typename T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

// Uninitialized bytes.
class LargeBytes {
 public:
  explicit LargeBytes(std::size_t bytes)
      : memory_(LargeAllocator<std::uint8_t>().allocate(bytes)), bytes_(bytes) {}
  LargeBytes(LargeBytes&& other) noexcept : memory_(other.memory_), bytes_(other.bytes_) {
    other.memory_ = nullptr;
  }
  LargeBytes& operator=(LargeBytes&&) = delete;
  ~LargeBytes() {
    if (memory_ != nullptr) LargeAllocator<std::uint8_t>().deallocate(memory_, bytes_);
  }
  [[nodiscard]] std::uint8_t* data() const { return memory_; }

 private:
  std::uint8_t* memory_;
  std::size_t bytes_;
};

// Prefetches `bytes` > 0 bytes at `memory`, which will be read and written soon.
inline void expect_use(const void* memory, std::size_t bytes = 1) {
  const auto* const first = static_cast<const std::uint8_t*>(memory);
  for (std::size_t offset = 0; offset < bytes; offset += 64) {
    __builtin_prefetch(first + offset, 1);
  }
  __builtin_prefetch(first + bytes - 1, 1);
  // Without this, g++ may conclude that a caller has no effects, since prefetching is not an
  // effect, and drop its calls.
  asm volatile("");
}

}  // namespace espalier::sim

#pragma once
// Memory for arrays that grow with the nodes, and prefetching. Host only.
//
// The arrays are in large pages where the system has them. With small pages, access in random order
// waits longer for the translation of addresses than for the data.

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
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
    // A hint: where it is not taken, nothing is lost but time.
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

// Bytes that nothing has written yet.
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

// Prefetches `bytes` > 0 from `memory` on, which will be read and written soon.
inline void expect_use(const void* memory, std::size_t bytes = 1) {
  const auto* const first = static_cast<const std::uint8_t*>(memory);
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(first + at, 1);
  __builtin_prefetch(first + bytes - 1, 1);
  // Otherwise g++ may find that a caller has no effects, and drop its calls: prefetching is not
  // one.
  asm volatile("");
}

}  // namespace espalier::sim

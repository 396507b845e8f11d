#pragma once
// A ring of as many messages as were ever in flight at once on one channel. Host only.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hal/sim/large_memory.h"

namespace espalier::sim {

// Message `number` is at (*this)[number] from its grow() or earlier until as many later ones are
// there as the capacity.
template <typename T>
class Ring {
 public:
  [[nodiscard]] T& operator[](std::uint64_t number) { return entries_[number & (capacity_ - 1)]; }
  [[nodiscard]] const T& operator[](std::uint64_t number) const {
    return entries_[number & (capacity_ - 1)];
  }
  [[nodiscard]] std::uint32_t capacity() const { return capacity_; }

 private:
  template <typename>
  friend class RingStore;
  T* entries_ = nullptr;
  std::uint32_t capacity_ = 0;  // a power of two, or 0
};

// The memory of all rings of one kind.
template <typename T>
class RingStore {
 public:
  // Doubles the ring; messages first .. end-1 stay in it.
  void grow(Ring<T>& ring, std::uint64_t first, std::uint64_t end) {
    const std::uint32_t capacity = std::max(1u, 2 * ring.capacity_);
    T* const entries = take(capacity);
    for (std::uint64_t number = first; number < end; ++number) {
      entries[number & (capacity - 1)] = ring[number];
    }
    if (ring.capacity_ > 0) free_[std::countr_zero(ring.capacity_)].push_back(ring.entries_);
    ring.entries_ = entries;
    ring.capacity_ = capacity;
  }
  // Makes room for `capacity` messages in an empty ring.
  void reserve(Ring<T>& ring, std::uint32_t capacity) {
    while (ring.capacity_ < capacity) grow(ring, 0, 0);
  }

 private:
  static constexpr std::size_t kSmallest = 1024,
                               kLargest = std::size_t{1} << 16;  // entries of a block

  T* take(std::uint32_t capacity) {
    std::vector<T*>& free = free_[std::countr_zero(capacity)];
    if (!free.empty()) {
      T* const entries = free.back();
      free.pop_back();
      return entries;
    }
    if (left_ < capacity) {
      // Few at first: most networks are small.
      left_ = std::max<std::size_t>(std::min(kLargest, blocks_.size() * kSmallest), capacity);
      next_ = blocks_.emplace_back(left_).data();
    }
    T* const entries = next_;
    next_ += capacity;
    left_ -= capacity;
    return entries;
  }

  std::vector<LargeVector<T>> blocks_;
  T* next_ = nullptr;  // the rest of the last block
  std::size_t left_ = 0;
  std::vector<T*> free_[32];  // by capacity, a power of two
};

}  // namespace espalier::sim

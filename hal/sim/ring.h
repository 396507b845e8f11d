#pragma once
// Rings of messages. Each ring has room for the maximum number of messages that were in flight at
// once on its channel. Host only.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "espalier/internal/base/assert.h"
#include "hal/sim/large_memory.h"

namespace espalier::sim {

// The entry of message `number` is number modulo the capacity, 2^log. The owner stores `log` in one
// byte of its own.
template <typename T>
class Ring {
 public:
  static constexpr std::uint8_t kEmpty = 0xff;  // log of a ring without room

  [[nodiscard]] T& at(std::uint64_t number, std::uint8_t log) const {
    return entries_[number & ((std::uint64_t{1} << log) - 1)];
  }
  [[nodiscard]] static std::uint64_t capacity(std::uint8_t log) {
    return log == kEmpty ? 0 : std::uint64_t{1} << log;
  }

 private:
  template <typename>
  friend class RingStore;
  T* entries_ = nullptr;
};

// The memory of all rings of one kind.
template <typename T>
class RingStore {
 public:
  // Doubles the ring; messages first .. end-1 stay in it.
  void grow(Ring<T>& ring, std::uint8_t& log, std::uint64_t first, std::uint64_t end) {
    ESPALIER_ASSERT(first <= end && end - first <= Ring<T>::capacity(log));
    Ring<T> larger;
    const auto larger_log = static_cast<std::uint8_t>(log == Ring<T>::kEmpty ? 0 : log + 1);
    larger.entries_ = take(larger_log);
    for (std::uint64_t number = first; number < end; ++number) {
      larger.at(number, larger_log) = ring.at(number, log);
    }
    if (log != Ring<T>::kEmpty) free_[log].push_back(ring.entries_);
    ring = larger;
    log = larger_log;
  }
  // Makes room for `entries` messages in an empty ring.
  void reserve(Ring<T>& ring, std::uint8_t& log, std::uint64_t entries) {
    while (Ring<T>::capacity(log) < entries) grow(ring, log, 0, 0);
  }

 private:
  // Entries per memory block. The first blocks are small, because most networks are small.
  static constexpr std::size_t kSmallest = 256, kLargest = std::size_t{1} << 16;

  T* take(std::uint8_t log) {
    std::vector<T*>& free = free_[log];
    if (!free.empty()) {
      T* const entries = free.back();
      free.pop_back();
      return entries;
    }
    ESPALIER_ASSERT(log < 64);
    const std::size_t wanted = std::size_t{1} << log;
    if (left_ < wanted) {
      left_ = std::max(std::clamp(blocks_.size() * kSmallest, kSmallest, kLargest), wanted);
      next_ = blocks_.emplace_back(left_).data();
    }
    T* const entries = next_;
    next_ += wanted;
    left_ -= wanted;
    return entries;
  }

  std::vector<LargeVector<T>> blocks_;
  T* next_ = nullptr;  // the unused part of the last block
  std::size_t left_ = 0;
  std::vector<T*> free_[64];  // by log
};

}  // namespace espalier::sim

#pragma once
// Containers of the simulated network. Host only.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "espalier/internal/base/assert.h"
#include "espalier/internal/hal/sim/traffic.h"
#include "hal/sim/large_memory.h"

namespace espalier::sim {

// Sorts a list of nodes and removes duplicates.
class NodeOrder {
 public:
  // `list`: nodes < `nodes`. Takes O(nodes / 64 + entries) time for a long list, and at most the
  // time of sorting for a short one.
  void sort(std::vector<std::uint32_t>& list, std::uint32_t nodes) {
    if (list.size() <= nodes / 64) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      return;
    }
    marks_.assign(nodes / 64 + 1, 0);
    for (const std::uint32_t node : list) marks_[node / 64] |= std::uint64_t{1} << node % 64;
    list.clear();
    for (std::uint32_t word = 0; word < marks_.size(); ++word) {
      for (std::uint64_t rest = marks_[word]; rest != 0; rest &= rest - 1) {
        list.push_back(64 * word + static_cast<std::uint32_t>(std::countr_zero(rest)));
      }
    }
  }

 private:
  std::vector<std::uint64_t> marks_;  // a bit per node
};

// A ring of messages, with room for the maximum number of messages that were in flight at once on
// its channel. The entry of message `number` is number modulo the capacity, 2^log. The owner stores
// `log` in one byte of its own.
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

// How far a node gets ahead of its own blocks: the basis of sim::Residence.
class ResidenceTimes {
 public:
  static constexpr std::int32_t kUnknown = -1;

  // Begins a collective whose blocks are received `flight` steps after the step of their send.
  void begin(std::uint32_t nodes, std::int32_t flight) {
    furthest_.assign(nodes, -1);
    flight_ = flight;
  }
  [[nodiscard]] bool begun() const { return !furthest_.empty(); }

  // The furthest step of which the node has begun to send or has received something; -1: none yet.
  [[nodiscard]] std::int32_t furthest(std::uint32_t node) const { return furthest_[node]; }
  // leaves: a block that the schedule sends in step `planned` (or kUnknown) begins to leave the
  // node. The node's furthest step was `furthest` when the block was posted. arrives: the block has
  // arrived at the node, which awaits it.
  void leaves(std::uint32_t channel, std::uint32_t node, std::int32_t planned,
              std::int32_t furthest) {
    if (planned == kUnknown || !begun()) return;
    const std::int32_t due = std::max(furthest, planned);
    add(channel, static_cast<std::uint32_t>(std::max(0, furthest_[node] - due)));
    furthest_[node] = std::max(furthest_[node], planned);
  }
  void arrives(std::uint32_t node, std::int32_t planned) {
    if (planned == kUnknown || !begun()) return;
    furthest_[node] = std::max(furthest_[node], planned + flight_);
  }
  void add(std::uint32_t channel, std::uint32_t steps) {
    if (steps >= blocks.size()) {
      blocks.resize(steps + 1);
      longest_channel = channel;
    }
    ++blocks[steps];
  }

  std::vector<std::uint64_t> blocks;  // Residence::blocks
  std::uint32_t longest_channel = 0;

 private:
  std::vector<std::int32_t> furthest_;  // by node
  std::int32_t flight_ = 0;
};

}  // namespace espalier::sim

#pragma once
// A queue ordered by a 64-bit key whose keys are rarely below a key already popped: a radix heap.
// Equal keys leave in the order in which they were pushed. Host only.
//
// Popped keys mostly increase, so an entry is sorted only as far as its key differs from the last
// popped key. Bucket b holds the keys whose highest bit that differs from `last_` is bit b-1. When
// bucket 0 (keys equal to last_) is empty, the entries of the first nonempty bucket are distributed
// over the buckets below it. An entry moves at most 64 times, mostly once or twice, and always to
// the end of a list. Therefore no access is random, however long the queue is.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "espalier/internal/base/assert.h"

namespace espalier::sim {

template <typename T>
class MonotoneQueue {
 public:
  [[nodiscard]] bool empty() const { return filled_ == 0 && past_.empty(); }
  // The least key. Requires a nonempty queue.
  [[nodiscard]] std::uint64_t least() const {
    ESPALIER_ASSERT(!empty());
    if (!past_.empty()) return past_.back().key;
    return buckets_[std::countr_zero(filled_)].least;
  }
  void push(std::uint64_t key, const T& value) {
    if (key < last_) return push_past(key, value);
    append(bucket_of(key), {key, value});
  }
  // Removes an entry with the least key; among equal keys, the one pushed first. Requires a
  // nonempty queue.
  T pop() {
    ESPALIER_ASSERT(!empty());
    if (!past_.empty()) {
      const T value = past_.back().value;
      past_.pop_back();
      return value;
    }
    if ((filled_ & 1) == 0) deal_out(static_cast<std::size_t>(std::countr_zero(filled_)));
    Bucket& bucket = buckets_[0];
    ESPALIER_ASSERT(bucket.first != nullptr && bucket.taken < bucket.first->count);
    const T value = bucket.first->entries[bucket.taken++].value;
    if (bucket.taken == bucket.first->count) drop_first(bucket);
    return value;
  }
  // The value that will be popped after `later` further calls of pop(), if easily known; otherwise
  // null.
  [[nodiscard]] const T* ahead(std::size_t later) const {
    const Chunk* const first = buckets_[0].first;
    const std::size_t index = buckets_[0].taken + later;
    return past_.empty() && first != nullptr && index < first->count ? &first->entries[index].value
                                                                     : nullptr;
  }
  // Allocates memory for this many entries now, so that none is allocated later.
  void reserve(std::size_t entries) {
    past_.reserve(entries);
    // Every bucket may have one partly filled chunk.
    const std::size_t chunks = entries / kChunkEntries + kBuckets + 1;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) give(new_chunk());
  }

 private:
  static constexpr std::size_t kBuckets = 64;  // keys have 63 bits, and the largest key of 64 bits
  static constexpr std::size_t kChunkEntries = 511;
  struct Entry {
    std::uint64_t key;
    T value;
  };
  struct Chunk {
    Chunk* next = nullptr;
    std::uint32_t count = 0;
    Entry entries[kChunkEntries];
  };
  struct Bucket {
    Chunk* first = nullptr;
    Chunk* last = nullptr;
    std::uint32_t taken = 0;  // entries of `first`
    std::uint64_t least = 0, greatest = 0;
  };

  [[nodiscard]] std::size_t bucket_of(std::uint64_t key) const {
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(key ^ last_)),
                                 kBuckets - 1);
  }

  void append(std::size_t number, const Entry& entry) {
    ESPALIER_ASSERT(entry.key >= last_ && number == bucket_of(entry.key));
    Bucket& bucket = buckets_[number];
    if (bucket.first == nullptr) {
      bucket.first = bucket.last = take();
      bucket.least = bucket.greatest = entry.key;
      filled_ |= std::uint64_t{1} << number;
    } else if (bucket.last->count == kChunkEntries) {
      bucket.last = bucket.last->next = take();
    }
    bucket.least = std::min(bucket.least, entry.key);
    bucket.greatest = std::max(bucket.greatest, entry.key);
    bucket.last->entries[bucket.last->count++] = entry;
  }

  // Stores a key below one already popped. These are few, and kept sorted.
  void push_past(std::uint64_t key, const T& value) {
    ESPALIER_ASSERT(key < last_);
    const auto place =
        std::lower_bound(past_.begin(), past_.end(), key,
                         [](const Entry& entry, std::uint64_t k) { return entry.key > k; });
    past_.insert(place, {key, value});
  }

  void deal_out(std::size_t number) {
    ESPALIER_ASSERT(number > 0 && number < kBuckets && buckets_[0].first == nullptr);
    const Bucket bucket = buckets_[number];
    buckets_[number] = Bucket();
    filled_ &= ~(std::uint64_t{1} << number);
    ESPALIER_ASSERT(bucket.least >= last_);
    last_ = bucket.least;
    if (bucket.least == bucket.greatest) {
      buckets_[0] = bucket;
      filled_ |= 1;
      return;
    }
    for (Chunk* chunk = bucket.first; chunk != nullptr;) {
      for (std::uint32_t i = 0; i < chunk->count; ++i) {
        append(bucket_of(chunk->entries[i].key), chunk->entries[i]);
      }
      Chunk* const next = chunk->next;
      give(chunk);
      chunk = next;
    }
  }

  void drop_first(Bucket& bucket) {
    ESPALIER_ASSERT(bucket.taken == bucket.first->count);
    Chunk* const old = bucket.first;
    bucket.first = old->next;
    bucket.taken = 0;
    if (bucket.first == nullptr) {
      bucket.last = nullptr;
      filled_ &= ~std::uint64_t{1};
    }
    give(old);
  }

  Chunk* new_chunk() { return chunks_.emplace_back(std::make_unique<Chunk>()).get(); }
  Chunk* take() {
    if (free_ == nullptr) return new_chunk();
    Chunk* const chunk = free_;
    free_ = chunk->next;
    chunk->next = nullptr;
    chunk->count = 0;
    return chunk;
  }
  void give(Chunk* chunk) {
    chunk->next = free_;
    free_ = chunk;
  }

  Bucket buckets_[kBuckets + 1];  // the last is where an empty queue would look
  std::uint64_t filled_ = 0;      // bit b: bucket b is not empty
  std::uint64_t last_ = 0;
  std::vector<Entry> past_;  // keys below last_, descending
  Chunk* free_ = nullptr;
  std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace espalier::sim

#pragma once
// The messages of one link and direction that are let in and not complete, in step order, and the
// tags that both ends compare. Freestanding.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "espalier/base/limits.h"

namespace espalier {

inline constexpr std::uint32_t kRing = std::bit_ceil(kMaxWindow);
inline constexpr std::uint8_t kRingMask = kRing - 1;

// A send or receive that is let in.
struct Message {
  std::size_t size = 0;
  std::uint8_t* bytes = nullptr;
  std::uint8_t step = 0;    // its step's place in the ring of steps
  std::uint8_t action = 0;  // position in the program
};

// At most one message a step where the link has one lane, so at most W; where it has more, steps
// wait until there is room. They are posted and complete in order.
struct Lane {
  // The ring of messages, field by field: no padding.
  std::size_t sizes[kRing] = {};
  std::uint8_t* bytes[kRing] = {};
  std::uint8_t steps[kRing] = {};
  std::uint8_t actions[kRing] = {};
  // Counters modulo 256, at() of each: `first` to `posted` are posted, `posted` to `end` are not.
  std::uint8_t first = 0, posted = 0, end = 0;
  std::uint32_t number = 0;  // of the next message to post, in this collective

  [[nodiscard]] Message at(std::uint8_t counter) const {
    const std::uint32_t place = counter & kRingMask;
    return {sizes[place], bytes[place], steps[place], actions[place]};
  }
  void add(const Message& message) {
    const std::uint32_t place = end++ & kRingMask;
    sizes[place] = message.size;
    bytes[place] = message.bytes;
    steps[place] = message.step;
    actions[place] = message.action;
  }
  [[nodiscard]] std::uint32_t let_in() const { return static_cast<std::uint8_t>(end - first); }
  [[nodiscard]] bool outstanding() const { return first != posted; }
  [[nodiscard]] bool unposted() const { return posted != end; }
};

// A tag: the collective's sequence number in the upper 16 bits, below it a hash of all that the
// ranks must agree on, plus the message's number on its link.
struct TagBase {
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << 48) - 1;
  std::uint16_t sequence = 0;
  std::uint64_t hash = 0;

  [[nodiscard]] std::uint64_t tag(std::uint64_t number) const {
    return (std::uint64_t{sequence} << 48) | ((hash + number) & kMask);
  }
  // The number of the message with this tag, if the hashes agree; else (but for 1 in 2^32) more
  // than any message's.
  [[nodiscard]] std::uint64_t number(std::uint64_t tag) const { return (tag - hash) & kMask; }
  // What probes carry of it: whoever is asked may find that it runs something else, though neither
  // end sends anything.
  [[nodiscard]] std::uint32_t word() const {
    return (std::uint32_t{sequence} << 16) | static_cast<std::uint32_t>(hash & 0xffff);
  }
  [[nodiscard]] bool contradicts(std::uint32_t word) const {
    return word >> 16 == sequence && word != this->word();
  }
  // How many collectives later than this one the tag's is.
  [[nodiscard]] std::int16_t later(std::uint64_t tag) const {
    return static_cast<std::int16_t>(static_cast<std::uint16_t>((tag >> 48) - sequence));
  }
};

}  // namespace espalier

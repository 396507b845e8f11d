#pragma once
// Message rings: the issued, incomplete messages of one direction of a link, in step order. And the
// tags that both ends compare. Freestanding.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"

namespace espalier {

// kRing: capacity of the ring of steps and of each message ring, a power of two. A counter with the
// bits of kRingMask gives a position in the ring.
inline constexpr std::uint32_t kRing = std::bit_ceil(kMaxWindow);
inline constexpr std::uint8_t kRingMask = kRing - 1;

// An issued send or receive.
struct Message {
  std::size_t size = 0;
  std::uint8_t* bytes = nullptr;
  std::uint8_t step = 0;    // position of its step in the ring of steps
  std::uint8_t action = 0;  // position in the program
};

inline namespace ESPALIER_MACHINE_BUILD {
// The ring of messages of one direction of a link. They are posted in order and complete in order.
// A link with one lane has at most one message per step, so at most W. If a link has more lanes,
// steps wait until the ring has room.
struct MessageRing {
  // One array per field of Message, so that nothing is lost to padding.
  std::size_t sizes[kRing] = {};
  std::uint8_t* bytes[kRing] = {};
  std::uint8_t steps[kRing] = {};
  std::uint8_t actions[kRing] = {};
  // Counters modulo 256. Messages first .. first_unposted-1 are posted; messages
  // first_unposted .. end-1 are not.
  std::uint8_t first = 0, first_unposted = 0, end = 0;
  std::uint32_t next_number = 0;  // number of the next message to post, counted per collective

  // Returns the message with this counter, which is one of first .. end-1.
  [[nodiscard]] Message message(std::uint8_t counter) const {
    ESPALIER_ASSERT(static_cast<std::uint8_t>(counter - first) < size());
    const std::uint32_t index = counter & kRingMask;
    return {sizes[index], bytes[index], steps[index], actions[index]};
  }
  // Appends a message, not posted yet. Requires size() < kRing.
  void add(const Message& message) {
    ESPALIER_ASSERT(size() < kRing);
    const std::uint32_t index = end++ & kRingMask;
    sizes[index] = message.size;
    bytes[index] = message.bytes;
    steps[index] = message.step;
    actions[index] = message.action;
    check_invariants();
  }
  // Returns the number of issued, incomplete messages.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint8_t>(end - first); }
  // Whether posted messages are incomplete.
  [[nodiscard]] bool has_outstanding() const { return first != first_unposted; }
  // Whether messages are issued, but not posted.
  [[nodiscard]] bool has_unposted() const { return first_unposted != end; }
  // Asserts that the ring holds at most kRing messages, and posted ones before the others.
  void check_invariants() const {
    ESPALIER_ASSERT(size() <= kRing);
    ESPALIER_ASSERT(static_cast<std::uint8_t>(first_unposted - first) <= size());
  }
};
}  // namespace ESPALIER_MACHINE_BUILD

// The tags of one collective. The upper 16 bits of a tag are the collective's sequence number. The
// lower 48 bits are a hash of everything that the ranks must agree on, plus the message's number on
// its link.
struct TagBase {
  // The bits of a tag below the sequence number.
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << 48) - 1;
  std::uint16_t sequence = 0;
  std::uint64_t hash = 0;

  // Returns the tag of message `number` of its link and direction, counted from 0 per collective.
  [[nodiscard]] std::uint64_t tag(std::uint64_t number) const {
    ESPALIER_ASSERT(hash <= kMask);
    return (std::uint64_t{sequence} << 48) | ((hash + number) & kMask);
  }
  // Returns the number of the message with this tag if the hashes agree. Otherwise returns a number
  // above that of any message, except with probability 2^-32.
  [[nodiscard]] std::uint64_t message_number(std::uint64_t tag) const {
    ESPALIER_ASSERT(hash <= kMask);
    return (tag - hash) & kMask;
  }
  // Returns the part of the tag that a keepalive probe carries. A probed node can detect that it
  // runs a different collective even if neither end sends a message.
  [[nodiscard]] std::uint32_t probe_word() const {
    return (std::uint32_t{sequence} << 16) | static_cast<std::uint32_t>(hash & 0xffff);
  }
  // Whether a probe's word has this sequence number, but a different hash.
  [[nodiscard]] bool contradicts(std::uint32_t word) const {
    return word >> 16 == sequence && word != probe_word();
  }
  // Returns the number of collectives from the current collective to the tag's; negative if the
  // tag's collective is earlier. Sequence numbers wrap.
  [[nodiscard]] std::int16_t collectives_ahead(std::uint64_t tag) const {
    return static_cast<std::int16_t>(static_cast<std::uint16_t>((tag >> 48) - sequence));
  }
};

}  // namespace espalier

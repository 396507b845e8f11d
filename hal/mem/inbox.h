#pragma once
// The memory that carries one direction of a link: its sender writes, its receiver reads and says
// how far it is. Freestanding.
//
// Each word has one writer, and nothing is ever locked: a process that stops or ends at any
// instruction leaves the other one at work. A word is published with release order after what it
// announces, and read with acquire order before.
//
// Message k, counted over the lifetime of the link, is announced in entry k mod ring. A message of
// at most kInlineBytes is in its entry, so one cache line carries it; one of at most slot_bytes is
// in a slot that the entry names. A longer message is read where it is, if the receiver can read
// the sender's memory there; otherwise it follows in pieces, when the receiver has granted it.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "espalier/hal/mem/mem_endpoint.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::mem {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::uint32_t kInlineBytes = 32;

// A number that both ends access: little-endian, so that emulated processes of any byte order share
// it with others.
class Word {
 public:
  [[nodiscard]] std::uint32_t load(std::memory_order order) const {
    return little(stored_.load(order));
  }
  void store(std::uint32_t value, std::memory_order order) { stored_.store(little(value), order); }

 private:
  std::atomic<std::uint32_t> stored_;
};

// The sender's announcement of a message, in a line of its own.
struct alignas(kLineBytes) Entry {
  Word number;  // low 32 bits of k + 1, written last
  Little<std::uint32_t> check;
  Little<std::uint64_t> tag;
  Little<std::uint64_t> size;
  // A message for a slot: its number. A longer one: 1 + where the bytes are in the sender's memory;
  // 0: they are sent.
  Little<std::uint64_t> place;
  std::uint8_t bytes[kInlineBytes];
};
static_assert(sizeof(Entry) == kLineBytes);

// The newest control of one kind. Its sequence is odd while it is written.
struct alignas(kLineBytes) ControlBox {
  Word sequence;
  Word number, status, detector, peer;
};

// Written by the sender, beside entries and pieces.
struct alignas(kLineBytes) SenderLine {
  Word present;  // 1: the sender has this link
  Word filled;   // pieces
  // The piece that lies first in the inbox. Changes when none is in use, unless pieces take turns:
  // so a short message takes the same memory as the one before, which is in the caches.
  Word first;
  Word controls;  // controls that were written
  // 1: the sender has taken its memory back. What was read there before this was seen is void.
  Word released;
};

// Written by the receiver.
struct alignas(kLineBytes) ReceiverLine {
  Word consumed;  // messages: complete, or found not to match
  Word granted;   // messages: the longer ones among them may follow in pieces
  Word drained;   // pieces
  Word reads;     // 1: the receiver can read memory that the sender shares
};

// Written by the receiver for message k before `consumed` covers it: whether k did not match.
struct Verdict {
  Word mismatched;
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// Offsets in an inbox. Both ends have the same shape.
class InboxLayout {
 public:
  explicit constexpr InboxLayout(const Shape& shape) : shape_(shape) {}
  [[nodiscard]] constexpr std::size_t bytes() const {
    return pieces() + std::size_t{shape_.pieces} * shape_.piece_bytes;
  }
  [[nodiscard]] static constexpr std::size_t sender() { return 0; }
  [[nodiscard]] static constexpr std::size_t receiver() { return kLineBytes; }
  [[nodiscard]] static constexpr std::size_t control(std::uint32_t kind) {
    ESPALIER_ASSERT(kind < kControlKinds);
    return (2 + kind) * kLineBytes;
  }
  [[nodiscard]] static constexpr std::size_t verdicts() { return (2 + kControlKinds) * kLineBytes; }
  [[nodiscard]] constexpr std::size_t entries() const {
    return verdicts() + lines(shape_.ring * sizeof(Verdict));
  }
  [[nodiscard]] constexpr std::size_t slots() const {
    return entries() + shape_.ring * sizeof(Entry);
  }
  [[nodiscard]] constexpr std::size_t pieces() const {
    return slots() + std::size_t{shape_.ring} * shape_.slot_bytes;
  }

 private:
  [[nodiscard]] static constexpr std::size_t lines(std::size_t bytes) {
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  const Shape& shape_;
};

// An inbox in memory: zeros at first. The shape must outlive this object.
class Inbox {
 public:
  Inbox(std::uint8_t* memory, const Shape& shape) : memory_(memory), shape_(shape) {
    ESPALIER_ASSERT(reinterpret_cast<std::uintptr_t>(memory) % kLineBytes == 0);
  }
  [[nodiscard]] SenderLine& sender() const { return at<SenderLine>(InboxLayout::sender()); }
  [[nodiscard]] ReceiverLine& receiver() const { return at<ReceiverLine>(InboxLayout::receiver()); }
  [[nodiscard]] ControlBox& control(std::uint32_t kind) const {
    return at<ControlBox>(InboxLayout::control(kind));
  }
  [[nodiscard]] Verdict& verdict(std::uint32_t message) const {
    return at<Verdict>(InboxLayout::verdicts() + place(message) * sizeof(Verdict));
  }
  [[nodiscard]] Entry& entry(std::uint32_t message) const {
    return at<Entry>(layout().entries() + place(message) * sizeof(Entry));
  }
  [[nodiscard]] std::uint8_t* slot(std::uint32_t number) const {
    ESPALIER_ASSERT(number < shape_.ring);
    return memory_ + layout().slots() + std::size_t{number} * shape_.slot_bytes;
  }
  [[nodiscard]] std::uint8_t* piece(std::uint32_t number) const {
    const std::uint32_t at = number - sender().first.load(std::memory_order_relaxed);
    return memory_ + layout().pieces() + std::size_t{at % shape_.pieces} * shape_.piece_bytes;
  }

 private:
  [[nodiscard]] InboxLayout layout() const { return InboxLayout(shape_); }
  [[nodiscard]] std::uint32_t place(std::uint32_t message) const {
    return message & (shape_.ring - 1);
  }
  template <typename T>
  [[nodiscard]] T& at(std::size_t offset) const {
    return *reinterpret_cast<T*>(memory_ + offset);
  }
  std::uint8_t* memory_;
  const Shape& shape_;
};

}  // namespace espalier::mem

#pragma once
// The data that two endpoints write into each other's arena, and the 8 bytes of immediate data with
// each write. All numbers are little-endian, as on every host that this back end is built for.

#include <bit>
#include <cstdint>

#include "espalier/base/digest.h"
#include "espalier/base/limits.h"
#include "espalier/hal/endpoint.h"

namespace espalier::ofi {

static_assert(std::endian::native == std::endian::little);

// The meaning of a write. `number` and `value` are fields of Immediate.
enum class Opcode : std::uint8_t {
  kHello = 1,      // This direction of the lane works.
  kEager,          // Message `number` is in its slot; `value` is the sender's check word.
  kPlaced,         // Message `number` is in its final place; `value` is the sender's check word.
  kClearToSend,    // Receive `number` is posted; a ClearToSendEntry says where its bytes belong.
  kRequestToSend,  // Large message `number` waits for its clear to send; a RequestToSendEntry has
                   // its tag and size.
  kCredit,         // `value` messages (low 32 bits) have been consumed.
  kWithdrawn,      // To the receiver: message `number` does not match your receive and is not sent.
  kRejected,       // To the sender: your message `number` did not match my receive.
  kProbe,          // Keepalive probe; `value` is its number.
  kAnswer,         // Reply to the keepalive probe with the number `value`.
  kCause,          // The cause is in a CauseEntry; `value` is the digest of that entry.
  kGreeting,       // Node `value` has a lane to this node; a GreetingEntry has its number.
};

struct Immediate {
  Opcode opcode = Opcode::kHello;
  std::uint32_t lane = 0;    // the receiver's number of the lane
  std::uint16_t number = 0;  // low 16 bits of a message's number on its lane
  std::uint32_t value = 0;
};

[[nodiscard]] constexpr std::uint64_t pack(const Immediate& i) {
  return std::uint64_t{static_cast<std::uint8_t>(i.opcode)} << 56 |
         std::uint64_t{i.lane & 0xff} << 48 | std::uint64_t{i.number} << 32 | i.value;
}

[[nodiscard]] constexpr Immediate unpack(std::uint64_t data) {
  return {static_cast<Opcode>(data >> 56), static_cast<std::uint32_t>(data >> 48 & 0xff),
          static_cast<std::uint16_t>(data >> 32), static_cast<std::uint32_t>(data)};
}

// Returns the number nearest to `near` whose low 16 bits are `low`.
[[nodiscard]] constexpr std::uint64_t widen(std::uint16_t low, std::uint64_t near) {
  return near + static_cast<std::uint64_t>(static_cast<std::int64_t>(
                    static_cast<std::int16_t>(low - static_cast<std::uint16_t>(near))));
}

// Precedes the payload of an eager message in its slot.
struct EagerHeader {
  std::uint64_t tag = 0;
  std::uint32_t size = 0;
  std::uint32_t credit = 0;  // messages consumed in the other direction, low 32 bits
};

struct ClearToSendEntry {
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
  std::uint64_t address = 0;  // of the final place, as the provider counts addresses
  std::uint64_t key = 0;
  std::uint64_t credit = 0;  // messages consumed by the receiver
};

struct RequestToSendEntry {
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
};

struct CauseEntry {
  std::uint32_t status = 0;
  std::uint32_t detector = 0;
  std::uint32_t peer = 0;
  std::uint32_t reception_blocked = 0;
};

// Several nodes may share the place of their greetings: the entry names its node, and greetings are
// repeated until they are answered.
struct GreetingEntry {
  std::uint32_t node = 0;
  std::uint32_t lane = 0;  // the node's number of its lane to this node
};

[[nodiscard]] inline std::uint32_t digest(const CauseEntry& entry) {
  const std::uint64_t first = std::uint64_t{entry.status} << 32 | entry.detector;
  const std::uint64_t second = std::uint64_t{entry.reception_blocked} << 32 | entry.peer;
  return static_cast<std::uint32_t>(digest_u64(digest_u64(kDigestSeed, first), second));
}

// The offsets in an arena. Both ends have the same window and eager size, so each end can compute
// the other's offsets.
class ArenaLayout {
 public:
  static constexpr std::uint64_t kLineBytes = 64;

  ArenaLayout() = default;
  ArenaLayout(std::uint32_t window, std::uint32_t eager_bytes)
      : stride_((sizeof(EagerHeader) + eager_bytes + kLineBytes - 1) / kLineBytes * kLineBytes),
        ring_(std::bit_ceil(window)) {}

  [[nodiscard]] std::uint32_t ring() const { return ring_; }      // slots per lane, a power of two
  [[nodiscard]] std::uint64_t stride() const { return stride_; }  // bytes per slot
  [[nodiscard]] std::uint64_t bytes(std::uint32_t lanes) const { return lane_offset(lanes); }
  // The entry for greetings of `node`, whose lane number is not known.
  [[nodiscard]] std::uint64_t greeting(std::uint32_t node) const {
    return node % kMaxLinks * kLineBytes;
  }
  [[nodiscard]] std::uint64_t slot(std::uint32_t lane, std::uint64_t position) const {
    return lane_offset(lane) + position * stride_;
  }
  [[nodiscard]] std::uint64_t clear_to_send(std::uint32_t lane, std::uint64_t position) const {
    return lane_offset(lane) + ring_ * stride_ + position * kLineBytes;
  }
  [[nodiscard]] std::uint64_t request_to_send(std::uint32_t lane) const { return tail(lane); }
  [[nodiscard]] std::uint64_t cause(std::uint32_t lane) const { return tail(lane) + kLineBytes; }
  // The target of writes that carry immediate data only.
  [[nodiscard]] std::uint64_t sink(std::uint32_t lane) const { return tail(lane) + 2 * kLineBytes; }

 private:
  [[nodiscard]] std::uint64_t lane_offset(std::uint32_t lane) const {
    return kMaxLinks * kLineBytes + lane * (ring_ * (stride_ + kLineBytes) + 3 * kLineBytes);
  }
  [[nodiscard]] std::uint64_t tail(std::uint32_t lane) const {
    return lane_offset(lane) + ring_ * (stride_ + kLineBytes);
  }
  std::uint64_t stride_ = 0;
  std::uint32_t ring_ = 1;
};

static_assert(sizeof(ClearToSendEntry) <= ArenaLayout::kLineBytes);

}  // namespace espalier::ofi

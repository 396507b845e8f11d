#pragma once
// The data that two endpoints write into each other's arena, and the 8 bytes of immediate data with
// each write. All numbers are little-endian on every host.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::ofi {

// The meaning of a write. `number` and `code` are fields of Immediate.
enum class Opcode : std::uint8_t {
  kHello = 1,         // This direction of the lane works.
  kEager,             // Message `number` is in its slot.
  kPlaced,            // Message `number` is in its final place; its check word is 0.
  kPlacedWithHeader,  // The same; the message's header is in its slot.
  kClearToSend,       // Receive `number` is posted; a ClearToSendEntry says where its bytes belong.
  kRequestToSend,     // Large message `number` waits for its clear to send; a RequestToSendEntry
                      // has its tag and size.
  kCredit,            // `number` messages have been consumed.
  kWithdrawn,         // To the receiver: message `number` does not match your receive and is not
                      // sent.
  kRejected,          // To the sender: your message `number` did not match my receive.
  kProbe,             // A keepalive probe is in its ControlEntry.
  kAnswer,            // The reply to a keepalive probe is in its ControlEntry.
  kCause,             // A cause is in its ControlEntry.
  kGreeting,  // Node `code` has a lane to this endpoint, whose member number is in the place
              // of the lane; a GreetingEntry has the lane's numbers.
  kGoodbye,   // The sender's endpoint has ended: no other word follows on this lane.
};

// Lanes below kShortLanes take 8 bits, others 16, of which the first is 1 and the code has 8 bits
// fewer. Only the endpoints of a SharedFabric have the latter.
struct Immediate {
  Opcode opcode = Opcode::kHello;  // 4 bits
  std::uint32_t lane = 0;          // Lane::id of the receiver; 8 or 16 bits
  std::uint8_t number = 0;         // low 8 bits of a message's number on its lane
  std::uint64_t code = 0;          // authenticates the word; 44 or 36 bits
};

inline constexpr std::uint32_t kShortLanes = 1 << 7;
inline constexpr std::uint32_t kMaxLaneIds = 1 << 15;
inline constexpr std::uint64_t kImmediateCodeMask = (std::uint64_t{1} << 44) - 1;

[[nodiscard]] constexpr std::uint64_t code_mask(std::uint32_t lane) {
  return lane < kShortLanes ? kImmediateCodeMask : kImmediateCodeMask >> 8;
}

// Whether the word carries this code, of which it has the low bits.
[[nodiscard]] constexpr bool has_code(const Immediate& i, std::uint64_t code) {
  return i.code == (code & code_mask(i.lane));
}

[[nodiscard]] constexpr std::uint64_t pack(const Immediate& i) {
  const std::uint64_t opcode = std::uint64_t{static_cast<std::uint8_t>(i.opcode)} << 60;
  const std::uint64_t code = i.code & code_mask(i.lane);
  if (i.lane < kShortLanes) {
    return opcode | std::uint64_t{i.lane} << 52 | std::uint64_t{i.number} << 44 | code;
  }
  const std::uint64_t lane = kMaxLaneIds | (i.lane & (kMaxLaneIds - 1));
  return opcode | lane << 44 | std::uint64_t{i.number} << 36 | code;
}

[[nodiscard]] constexpr Immediate unpack(std::uint64_t data) {
  const auto opcode = static_cast<Opcode>(data >> 60);
  const auto lane = static_cast<std::uint32_t>(data >> 52 & 0xff);
  if (lane < kShortLanes) {
    return {opcode, lane, static_cast<std::uint8_t>(data >> 44), data & kImmediateCodeMask};
  }
  return {opcode, static_cast<std::uint32_t>(data >> 44 & (kMaxLaneIds - 1)),
          static_cast<std::uint8_t>(data >> 36), data & (kImmediateCodeMask >> 8)};
}

// Returns the number nearest to `near` whose low 8 bits are `low`. Two numbers of a lane that are
// in use at once are at most 64 apart.
[[nodiscard]] constexpr std::uint64_t widen(std::uint8_t low, std::uint64_t near) {
  return near + static_cast<std::uint64_t>(static_cast<std::int64_t>(
                    static_cast<std::int8_t>(low - static_cast<std::uint8_t>(near))));
}

// Precedes the payload of an eager message in its slot; with authenticate_data, long messages have
// it, too. The code in the immediate data covers it.
struct MessageHeader {
  Little<std::uint64_t> tag = 0;
  Little<std::uint32_t> size = 0;
  Little<std::uint32_t> credit = 0;  // messages consumed in the other direction, low 32 bits
  Little<std::uint32_t> check = 0;   // the sender's check word
  // Authenticates the payload where that is asked for (EndpointState::has_payload_code); else 0.
  Little<std::uint32_t> payload_code = 0;
};
static_assert(sizeof(MessageHeader) == 24);

// The code in the immediate data covers the number only, because a newer entry may replace this
// one. It has a code of its own.
struct ClearToSendEntry {
  Little<std::uint64_t> tag = 0;
  Little<std::uint64_t> size = 0;
  Little<std::uint64_t> address = 0;  // of the final place, as the provider counts addresses
  Little<std::uint64_t> key = 0;
  Little<std::uint32_t> credit = 0;  // messages consumed by the receiver, low 32 bits
  Little<std::uint32_t> port = 0;    // of a SharedFabric: where to write; see Domain::socket_port()
  Little<std::uint64_t> number = 0;
  Little<std::uint64_t> code = 0;
};

// The code in the immediate data covers it.
struct RequestToSendEntry {
  Little<std::uint64_t> tag = 0;
  Little<std::uint64_t> size = 0;
};

// The immediate data of controls has no code: whatever it says, the newest entry is read.
struct ControlEntry {
  Little<std::uint64_t> sequence = 0;  // above that of every earlier control of this lane
  Little<std::uint32_t> number = 0;    // of a probe and its reply
  Little<std::uint32_t> status = 0;    // the rest: of a cause
  Little<std::uint32_t> detector = 0;
  Little<std::uint32_t> peer = 0;
  Little<std::uint64_t> unused = 0;
  Little<std::uint64_t> code = 0;
};

// Several nodes may share the place of their greetings: the entry names its node, and greetings are
// repeated until they are answered.
struct GreetingEntry {
  Little<std::uint32_t> node = 0;
  Little<std::uint32_t> lane = 0;     // the node's index of its lane to this node
  Little<std::uint32_t> answers = 0;  // 1: replies to a greeting, and wants no reply
  Little<std::uint32_t> id = 0;       // Lane::id
  Little<std::uint64_t> code = 0;
};

// Where node `node` writes its greetings of an endpoint (AddressHead::member).
[[nodiscard]] constexpr std::uint64_t greeting_offset(std::uint32_t member, std::uint32_t node,
                                                      std::uint32_t count) {
  ESPALIER_ASSERT(std::has_single_bit(count));
  return std::uint64_t{(member * 8 + node) & (count - 1)} * 64;
}

// The bytes of an entry that its code covers: all before it.
template <typename Entry>
inline constexpr std::size_t kCovered = sizeof(Entry) - sizeof(std::uint64_t);

// The offsets in an arena. Both ends have the same window and eager size, so each end can compute
// the other's offsets.
class ArenaLayout {
 public:
  static constexpr std::uint64_t kLineBytes = 64;

  ArenaLayout() = default;
  ArenaLayout(std::uint32_t window, std::uint32_t eager_bytes)
      : stride_((sizeof(MessageHeader) + eager_bytes + kLineBytes - 1) / kLineBytes * kLineBytes),
        ring_(std::bit_ceil(window)) {
    ESPALIER_ASSERT(window >= 1);
  }

  [[nodiscard]] std::uint32_t ring() const { return ring_; }      // slots per lane, a power of two
  [[nodiscard]] std::uint64_t stride() const { return stride_; }  // bytes per slot
  [[nodiscard]] std::uint64_t bytes(std::uint32_t lanes) const { return lane_offset(lanes); }
  [[nodiscard]] std::uint64_t slot(std::uint32_t lane, std::uint64_t position) const {
    ESPALIER_ASSERT(position < ring_);
    return lane_offset(lane) + position * stride_;
  }
  [[nodiscard]] std::uint64_t clear_to_send(std::uint32_t lane, std::uint64_t position) const {
    ESPALIER_ASSERT(position < ring_);
    return lane_offset(lane) + ring_ * stride_ + position * kLineBytes;
  }
  [[nodiscard]] std::uint64_t request_to_send(std::uint32_t lane) const { return tail(lane); }
  [[nodiscard]] std::uint64_t control(std::uint32_t lane, ControlKind kind) const {
    ESPALIER_ASSERT(static_cast<std::uint64_t>(kind) < kControlKinds);
    return tail(lane) + (1 + static_cast<std::uint64_t>(kind)) * kLineBytes;
  }
  // The target of writes that carry immediate data only.
  [[nodiscard]] std::uint64_t sink(std::uint32_t lane) const {
    return tail(lane) + (1 + kControlKinds) * kLineBytes;
  }

 private:
  [[nodiscard]] std::uint64_t lane_offset(std::uint32_t lane) const {
    return kMaxLinks * kLineBytes + lane * lane_bytes();
  }
  [[nodiscard]] std::uint64_t tail(std::uint32_t lane) const {
    return lane_offset(lane) + ring_ * (stride_ + kLineBytes);
  }
  [[nodiscard]] std::uint64_t lane_bytes() const {
    return ring_ * (stride_ + kLineBytes) + (2 + kControlKinds) * kLineBytes;
  }
  std::uint64_t stride_ = 0;
  std::uint32_t ring_ = 1;
};

static_assert(sizeof(ClearToSendEntry) <= ArenaLayout::kLineBytes);
static_assert(sizeof(ControlEntry) <= ArenaLayout::kLineBytes);

}  // namespace espalier::ofi

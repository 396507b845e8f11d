#pragma once
// The state of a lane: its two directions, and the announcements that the peer still needs.
//
// The directions are independent, each a ring of at most kMaxRing messages. The messages of a
// direction are numbered from 0 over the lane's whole lifetime. Message n uses position n % ring of
// every array and bit set.

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/assert.h"
#include "hal/fabric/config_check.h"
#include "hal/fabric/ofi/authentication.h"
#include "hal/fabric/ofi/domain.h"

namespace espalier::ofi {

[[nodiscard]] constexpr std::uint64_t bit(std::uint64_t position) {
  return std::uint64_t{1} << position;
}

// Returns the set of all positions of a ring.
[[nodiscard]] constexpr std::uint64_t all_positions(std::uint32_t ring) {
  return ring == kMaxRing ? ~std::uint64_t{0} : bit(ring) - 1;
}

// A number of bytes that the endpoint's thread adds to, and any thread may read.
class ByteCount {
 public:
  void add(std::uint64_t bytes) {
    const std::atomic_ref count(bytes_);
    count.store(count.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get() const {
    return std::atomic_ref(const_cast<std::uint64_t&>(bytes_)).load(std::memory_order_relaxed);
  }

 private:
  alignas(std::atomic_ref<std::uint64_t>::required_alignment) std::uint64_t bytes_ = 0;
};

struct Outgoing {
  struct Post {
    const void* bytes = nullptr;
    std::uint64_t size = 0;
    std::uint64_t tag = 0;
    std::uint32_t check = 0;
    std::uint32_t context = 0;
    bool done = false;
    Status status = Status::kOk;
  };
  std::array<Post, kMaxRing> posts;
  // reported <= sent <= posted.
  std::uint64_t posted = 0;           // messages posted by the caller
  std::uint64_t sent = 0;             // messages passed to libfabric, or withdrawn
  std::uint64_t reported = 0;         // messages completed to the caller
  std::uint64_t consumed = 0;         // messages that the peer consumed, as far as it announced
  std::uint64_t requested_below = 0;  // large messages below this number need no kRequestToSend
  // When the request of the message to send next is due; if the number of that message is
  // request_of - 1.
  std::uint64_t request_at_ns = 0;
  std::uint64_t request_of = 0;
  // One bit per position:
  std::uint64_t clear_to_send = 0;  // arrived for the message to send next at this position
  std::uint64_t in_slot = 0;        // the last message here was written to the peer's slot ...
  std::uint64_t may_mismatch = 0;   // ... and the peer may still find a mismatch
  std::uint64_t writing = 0;        // a write is pending that ends with a completion ...
  std::uint64_t own_bytes = 0;      // ... and reads the caller's memory, not the staged copy
  std::uint64_t late_mismatch = 0;  // completed with kOk, mismatch found later, not yet reported
  // The header of the large message to send next, if it has one, for the next attempt.
  MessageHeader large_header;
  std::uint64_t header_of = 0;                            // number of that message + 1
  std::array<std::uint32_t, kMaxRing> slot_cookies = {};  // of the last eager message per position

  // Asserts the order of the counters, and that no bit is beyond the ring.
  void check_invariants([[maybe_unused]] std::uint32_t ring) const {
    ESPALIER_ASSERT(reported <= sent && sent <= posted);
    ESPALIER_ASSERT(posted - reported <= ring);
    ESPALIER_ASSERT(requested_below <= posted && request_of <= posted && header_of <= posted);
    ESPALIER_ASSERT(((clear_to_send | in_slot | may_mismatch) & ~all_positions(ring)) == 0);
    ESPALIER_ASSERT(((writing | own_bytes | late_mismatch) & ~all_positions(ring)) == 0);
  }
};

struct Incoming {
  struct Post {
    void* bytes = nullptr;
    std::uint64_t size = 0;
    std::uint64_t tag = 0;
    std::uint64_t address = 0;  // for the clear to send; only if size > eager_bytes
    std::uint64_t key = 0;      // the same
    std::uint32_t context = 0;
    std::uint32_t check = 0;
    Status status = Status::kOk;
  };
  enum class What : std::uint8_t {
    kNothing,
    kEager,
    kRequestToSend,
    kPlaced,
    kPlacedWithHeader,
    kWithdrawn
  };
  struct Arrival {
    What what = What::kNothing;
    std::uint32_t check = 0;
    std::uint64_t tag = 0;           // only kEager, kRequestToSend
    std::uint64_t size = 0;          // only kEager, kRequestToSend
    std::uint32_t payload_code = 0;  // only kEager, kPlacedWithHeader
  };
  std::array<Post, kMaxRing> posts;
  std::array<Arrival, kMaxRing> arrivals;
  // reported <= consumed <= posted.
  std::uint64_t posted = 0;      // receives posted by the caller
  std::uint64_t consumed = 0;    // receives ended, in order
  std::uint64_t reported = 0;    // receives completed to the caller
  std::uint64_t credited = 0;    // the count of consumed messages that the peer knows
  bool slot_consumed = false;    // an eager message was consumed since that count
  std::uint64_t unexpected = 0;  // one bit per position: kUnexpected must be reported

  // Asserts the order of the counters, and that no bit is beyond the ring.
  void check_invariants([[maybe_unused]] std::uint32_t ring) const {
    ESPALIER_ASSERT(reported <= consumed && consumed <= posted);
    ESPALIER_ASSERT(posted - reported <= ring);
    ESPALIER_ASSERT(credited <= consumed);
    ESPALIER_ASSERT(!slot_consumed || credited != consumed);
    ESPALIER_ASSERT((unexpected & ~all_positions(ring)) == 0);
  }
};

// The announcements that the peer still needs. They are written as soon as libfabric has room.
struct Outbox {
  bool hello = false;
  bool greeting = false;
  bool credit = false;
  bool goodbye = false;
  std::uint8_t controls = 0;  // one bit per ControlKind
  std::array<Control, kControlKinds> control;
  // One bit per position:
  std::uint64_t withdrawn = 0;
  std::uint64_t rejected = 0;
  std::uint64_t clear_to_send = 0;
};

struct Lane {
  std::uint32_t index = 0;        // this endpoint's number of the lane
  std::uint32_t id = 0;           // the same, but with a SharedFabric the process's
  std::uint32_t link = 0;         // the endpoint link
  std::uint32_t peer = 0;         // the peer node
  std::uint32_t remote_lane = 0;  // the peer's index and id of the lane; see is_open
  std::uint32_t remote_id = 0;
  Domain::Target target;
  bool opens = false;  // this end writes first
  std::uint32_t remote_member = 0;
  std::uint64_t remote_greetings = 0;  // as in AddressHead
  std::uint64_t remote_greetings_key = 0;
  std::uint32_t remote_greetings_count = 0;
  std::uint64_t remote_base = 0;  // address of the peer's arena
  std::uint64_t remote_key = 0;
  // Only with a SharedFabric: where long messages go, as its clear to send says.
  std::string remote_name;  // of the peer's port for short messages
  Domain::Target long_target;
  std::uint32_t long_port = 0;   // the peer's; 0: long_target is not set
  std::uint64_t long_epoch = 0;  // of this end's port
  DirectionKey send_key;
  DirectionKey receive_key;
  std::uint64_t controls_sent = 0;
  std::array<std::uint64_t, kControlKinds> controls_received = {};  // the latest sequence, by kind
  Outgoing out;
  Incoming in;
  Outbox outbox;
  std::uint8_t unread_controls = 0;  // arrived and not yet reported, one bit per ControlKind
  std::array<Control, kControlKinds> control;
  bool is_open = false;         // the peer's number of the lane is known, so writes may begin
  bool hello_received = false;  // or a greeting
  bool goodbye_received = false;
  bool has_ended = false;  // the peer's process, as note_end_of() says
  bool down = false;
  bool has_no_carrier = false;  // so it is down for ever
  bool down_reported = false;
  ByteCount sent;              // payload of messages that libfabric accepted
  ByteCount received;          // payload of messages that arrived
  std::uint32_t refusals = 0;  // consecutive refusals by libfabric
  std::uint64_t retry_at_ns = 0;
  // Only with added links:
  std::uint64_t connect_until_ns = 0;   // 0: this end has not asked to connect
  std::uint64_t greet_again_at_ns = 0;  // unless answered
  std::uint64_t greet_delay_ns = 0;
};

}  // namespace espalier::ofi

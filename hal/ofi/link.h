#pragma once
// The state of a link and of its lanes. A lane has two independent directions, each a ring of at
// most kMaxRing messages, and what still has to be told to the peer. Messages of a direction are
// numbered from 0 for life; message n uses position n % ring everywhere.

#include <array>
#include <cstdint>

#include "espalier/base/limits.h"
#include "espalier/hal/endpoint.h"
#include "hal/ofi/fabric.h"

namespace espalier::ofi {

inline constexpr std::uint32_t kMaxRing = 64;

[[nodiscard]] constexpr std::uint64_t bit(std::uint64_t position) {
  return std::uint64_t{1} << position;
}

struct Outgoing {
  struct Post {
    const void* bytes = nullptr;
    std::uint64_t size = 0;
    std::uint64_t tag = 0;
    std::uint32_t check = 0;
    std::uint32_t cookie = 0;
    bool done = false;
    Status status = Status::kOk;
  };
  std::array<Post, kMaxRing> posts;
  // reported <= sent <= posted: numbers of messages completed to the caller, handed to libfabric
  // (or withdrawn), posted by the caller.
  std::uint64_t posted = 0;
  std::uint64_t sent = 0;
  std::uint64_t reported = 0;
  std::uint64_t consumed = 0;   // by the peer, as far as it told
  std::uint64_t written = 0;    // bytes of the message to send next that went ahead in pieces
  std::uint64_t announced = 0;  // large messages below this number need no (further) kOpen
  // One bit a position:
  std::uint64_t granted = 0;   // the peer's grant for the message to send next there has come
  std::uint64_t eager = 0;     // the last message there went into the peer's slot
  std::uint64_t doubtful = 0;  // ... and the peer may still find that it does not fit
  std::uint64_t busy = 0;      // a write with a completion to come is under way
  std::uint64_t direct = 0;    // ... which is the message's own (else the staged copy's)
  std::uint64_t late = 0;      // completed with kOk, found not to fit afterwards, not yet reported
  std::array<std::uint32_t, kMaxRing> cookies = {};  // of the last eager message there
};

struct Incoming {
  struct Post {
    void* bytes = nullptr;
    std::uint64_t size = 0;
    std::uint64_t tag = 0;
    std::uint64_t address = 0;  // size > eager_bytes: what the grant says
    std::uint64_t key = 0;
    std::uint32_t cookie = 0;
    std::uint32_t check = 0;
    Status status = Status::kOk;
  };
  enum class What : std::uint8_t { kNothing, kEager, kOpen, kDirect, kWithdrawn };
  struct Arrival {
    What what = What::kNothing;
    std::uint32_t check = 0;
    std::uint64_t tag = 0;   // kEager, kOpen
    std::uint64_t size = 0;  // kEager, kOpen
  };
  std::array<Post, kMaxRing> posts;
  std::array<Arrival, kMaxRing> arrivals;
  // reported <= consumed <= posted.
  std::uint64_t posted = 0;
  std::uint64_t consumed = 0;
  std::uint64_t reported = 0;
  std::uint64_t told = 0;      // the count of consumed messages that the peer knows
  bool slot_consumed = false;  // an eager message since then
  std::uint64_t early = 0;     // one bit a position: kEarly is to be reported
};

// What is to be told, as soon as libfabric has room.
struct Outbox {
  bool hello = false;
  bool credit = false;
  std::uint8_t controls = 0;  // one bit a ControlKind
  std::array<Control, kControlKinds> control;
  // One bit a position:
  std::uint64_t withdrawn = 0;
  std::uint64_t rejected = 0;
  std::uint64_t grants = 0;
};

struct Lane {
  std::uint32_t link = 0;    // the endpoint's
  std::uint32_t peer = 0;    // node
  std::uint32_t remote = 0;  // the peer's number of this lane
  Fabric::Target target;
  std::uint64_t base = 0;  // of the peer's arena
  std::uint64_t key = 0;
  Outgoing out;
  Incoming in;
  Outbox box;
  std::uint8_t controls = 0;  // come and not yet reported, one bit a ControlKind
  std::array<Control, kControlKinds> control;
  bool hello = false;  // the peer's has come
  bool down = false;
  bool down_reported = false;
  bool deafens = false;  // the peer does not run, and we cannot read
  bool deafens_reported = false;
  std::uint32_t refusals = 0;  // of libfabric, in a row
  std::uint64_t retry_at = 0;  // ns
};

// One direction of a link: messages are dealt out over its lanes in turn, so that both ends know
// without a word which lane carries which.
struct Direction {
  std::uint32_t lanes = 1;
  std::uint32_t outstanding = 0;  // posted and not reported
  // Which lane the next message goes to, and from which one the next is to be reported.
  std::uint32_t post = 0;
  std::uint32_t report = 0;

  void posted() {
    ++outstanding;
    if (++post == lanes) post = 0;
  }
  void reported() {
    --outstanding;
    if (++report == lanes) report = 0;
  }
};

struct Link {
  std::uint32_t first = 0;  // its lanes are those from `first` on
  Direction out;
  Direction in;
};

}  // namespace espalier::ofi

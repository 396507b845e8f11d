#pragma once
// What two endpoints write into each other's arena, and the 8 bytes of immediate data that announce
// it. All numbers are little-endian, as on every host this back end is built for.

#include <bit>
#include <cstdint>

#include "espalier/base/digest.h"
#include "espalier/hal/endpoint.h"

namespace espalier::ofi {

static_assert(std::endian::native == std::endian::little);

// What a write says. The number is the low 16 bits of a message's number on its lane; the value is
// the sender's check word (kEager, kDirect), a count of consumed messages (kCredit) or a probe's
// number.
enum class Word : std::uint8_t {
  kHello = 1,  // the lane works, in this direction
  kEager,      // message `number` is in its slot
  kDirect,     // message `number` is in its final place
  kGrant,      // receive `number` is posted: where its bytes belong is in the grant entry
  kOpen,       // large message `number` waits for its grant: its tag and size are in the open entry
  kCredit,     // `value` messages (low 32 bits) have been consumed
  kWithdrawn,  // to the receiver: message `number` does not fit your receive; it will not come
  kRejected,   // to the sender: your message `number` did not fit my receive
  kProbe,
  kAnswer,
  kCause,  // the cause is in the cause entry; `value` is its digest
};

struct Immediate {
  Word word = Word::kHello;
  std::uint32_t lane = 0;  // at the receiver
  std::uint16_t number = 0;
  std::uint32_t value = 0;
};

[[nodiscard]] constexpr std::uint64_t pack(const Immediate& i) {
  return std::uint64_t{static_cast<std::uint8_t>(i.word)} << 56 |
         std::uint64_t{i.lane & 0xff} << 48 | std::uint64_t{i.number} << 32 | i.value;
}

[[nodiscard]] constexpr Immediate unpack(std::uint64_t data) {
  return {static_cast<Word>(data >> 56), static_cast<std::uint32_t>(data >> 48 & 0xff),
          static_cast<std::uint16_t>(data >> 32), static_cast<std::uint32_t>(data)};
}

// The number nearest to `near` whose low 16 bits are `low`.
[[nodiscard]] constexpr std::uint64_t widen(std::uint16_t low, std::uint64_t near) {
  return near + static_cast<std::uint64_t>(static_cast<std::int64_t>(
                    static_cast<std::int16_t>(low - static_cast<std::uint16_t>(near))));
}

// Before the payload of an eager message in its slot.
struct EagerHeader {
  std::uint64_t tag = 0;
  std::uint32_t size = 0;
  std::uint32_t credit = 0;  // messages consumed in the other direction, low 32 bits
};

struct GrantEntry {
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
  std::uint64_t address = 0;  // of the final place, as the provider addresses it
  std::uint64_t key = 0;
  std::uint64_t credit = 0;
};

struct OpenEntry {
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
};

struct CauseEntry {
  std::uint32_t status = 0;
  std::uint32_t detector = 0;
  std::uint32_t peer = 0;
  std::uint32_t deaf = 0;
};

[[nodiscard]] inline std::uint32_t digest(const CauseEntry& entry) {
  const std::uint64_t first = std::uint64_t{entry.status} << 32 | entry.detector;
  const std::uint64_t second = std::uint64_t{entry.deaf} << 32 | entry.peer;
  return static_cast<std::uint32_t>(digest_u64(digest_u64(kDigestSeed, first), second));
}

// Where things lie in an arena. Both ends have the same window and eager size, so both know.
class ArenaLayout {
 public:
  static constexpr std::uint64_t kLine = 64;

  ArenaLayout() = default;
  ArenaLayout(std::uint32_t window, std::uint32_t eager_bytes)
      : stride_((sizeof(EagerHeader) + eager_bytes + kLine - 1) / kLine * kLine),
        ring_(std::bit_ceil(window)) {}

  [[nodiscard]] std::uint32_t ring() const { return ring_; }  // slots a lane, a power of two
  [[nodiscard]] std::uint64_t stride() const { return stride_; }
  [[nodiscard]] std::uint64_t bytes(std::uint32_t links) const { return at(links); }
  [[nodiscard]] std::uint64_t slot(std::uint32_t lane, std::uint32_t slot) const {
    return at(lane) + slot * stride_;
  }
  [[nodiscard]] std::uint64_t grant(std::uint32_t lane, std::uint32_t slot) const {
    return at(lane) + ring_ * stride_ + slot * kLine;
  }
  [[nodiscard]] std::uint64_t open(std::uint32_t lane) const { return tail(lane); }
  [[nodiscard]] std::uint64_t cause(std::uint32_t lane) const { return tail(lane) + kLine; }
  // Where writes go that are all immediate.
  [[nodiscard]] std::uint64_t sink(std::uint32_t lane) const { return tail(lane) + 2 * kLine; }

 private:
  [[nodiscard]] std::uint64_t at(std::uint32_t lane) const {
    return lane * (ring_ * (stride_ + kLine) + 3 * kLine);
  }
  [[nodiscard]] std::uint64_t tail(std::uint32_t lane) const {
    return at(lane) + ring_ * (stride_ + kLine);
  }
  std::uint64_t stride_ = 0;
  std::uint32_t ring_ = 1;
};

static_assert(sizeof(GrantEntry) <= ArenaLayout::kLine);

}  // namespace espalier::ofi

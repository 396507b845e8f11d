#pragma once
// The interfaces that a board implements for hal/serial: a carrier of frames between two nodes, and
// a clock. Freestanding.

#include <cstdint>

#include "espalier/base/status.h"

namespace espalier {

// Carries frames to one peer, which has the same kind of carrier. Frames may be lost, duplicated,
// reordered, corrupted or truncated. The layer above detects and repairs all of these. No call
// waits.
class Carrier {
 public:
  // Size of the longest frame in bytes; at least kMinMtu (frame.h), and the same at both ends.
  [[nodiscard]] virtual std::uint32_t mtu() const = 0;

  // kOk: the frame (1 .. mtu() bytes) was sent or lost, and its memory may be reused. kTryAgain: no
  // room now, or only part of it was sent. Call again with the same frame, unchanged and at the
  // same address, before any other frame.
  [[nodiscard]] virtual Status send(const std::uint8_t* frame, std::uint32_t size) = 0;

  // Returns the size in bytes of a frame that arrived and is now in `frame`, or 0 if there is none.
  // `frame` has room for mtu() bytes and must be the same memory in every call: between calls the
  // carrier may keep part of a frame there.
  [[nodiscard]] virtual std::uint32_t receive(std::uint8_t* frame) = 0;

  // Whether the carrier itself has detected that it is broken (a hang-up, not silence). It then
  // stays broken.
  [[nodiscard]] virtual bool down() const { return false; }

 protected:
  ~Carrier() = default;  // never deleted through the base: no heap
};

// The clock of a node, with a way to wait.
class Clock {
 public:
  // Nanoseconds, monotonic.
  [[nodiscard]] virtual std::uint64_t now() = 0;
  // Returns when a carrier may have a frame or now() reaches `until`; may return early. A board
  // that cannot sleep returns at once.
  virtual void wait(std::uint64_t until) { static_cast<void>(until); }

 protected:
  ~Clock() = default;
};

}  // namespace espalier

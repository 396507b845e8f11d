#pragma once
// What carries frames between two nodes, and the clock: what a board brings to hal/serial.
// Freestanding.

#include <cstdint>

#include "espalier/base/status.h"

namespace espalier {

// Carries frames to one other end, which has the same kind of carrier. Frames may be lost,
// repeated, overtaken, damaged or cut short on the way: all of that is found and put right above.
// No call waits.
class Carrier {
 public:
  // Bytes of the longest frame; at least kMinMtu (frame.h), the same at both ends.
  [[nodiscard]] virtual std::uint32_t mtu() const = 0;

  // kOk: the frame, 1 .. mtu() bytes, is on its way or lost; its bytes may be changed.
  // kTryAgain: there is no room now, or part of it has gone: call again with the same frame, in
  // the same place and unchanged, before any other.
  [[nodiscard]] virtual Status send(const std::uint8_t* frame, std::uint32_t size) = 0;

  // Bytes of a frame that has come, now in `frame`; 0: none yet. `frame` has room for mtu() bytes
  // and is the same place at every call: between calls the carrier may keep part of a frame there.
  [[nodiscard]] virtual std::uint32_t receive(std::uint8_t* frame) = 0;

  // The carrier itself knows that it is broken (a hang-up, not silence); for good.
  [[nodiscard]] virtual bool down() const { return false; }

 protected:
  ~Carrier() = default;  // never deleted through the base: no heap
};

class Clock {
 public:
  // Nanoseconds, monotonic.
  [[nodiscard]] virtual std::uint64_t now() = 0;
  // Returns when a carrier may have something, or at `until` by now(), or earlier. A board that
  // cannot sleep returns at once.
  virtual void wait(std::uint64_t until) { static_cast<void>(until); }

 protected:
  ~Clock() = default;
};

}  // namespace espalier

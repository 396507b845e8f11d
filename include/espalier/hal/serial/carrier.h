#pragma once
// The interfaces that a board implements for hal/serial: a carrier of frames between two nodes, or
// for a ByteCarrier the stream of bytes below it, and a clock. Freestanding.

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

// The MTU of boards and hosts on byte streams; the same at both ends.
inline constexpr std::uint32_t kByteMtu = 512;

// A device that moves single bytes. No call waits.
class ByteStream {
 public:
  // False: the device has no room now.
  [[nodiscard]] virtual bool put(std::uint8_t byte) = 0;
  // False: no byte is available.
  [[nodiscard]] virtual bool get(std::uint8_t& byte) = 0;
  // Whether the device is broken. It then stays broken.
  [[nodiscard]] virtual bool down() const { return false; }

 protected:
  ~ByteStream() = default;
};

// Carries frames over a stream of bytes (a UART, a tty, a stream socket) with consistent overhead
// byte stuffing. Has no buffer: it stuffs directly from the caller's frame and unstuffs directly
// into it.
//
// Source: S. Cheshire, M. Baker: Consistent Overhead Byte Stuffing, IEEE/ACM Transactions on
// Networking 7(2), 1999. A stuffed frame contains no byte 0, and a 0 ends it. Therefore, after any
// loss or damage, the frame after the next 0 is decoded correctly. Stuffing costs 2 bytes per
// frame, and 1 more per 254 bytes without a zero.
class ByteCarrier final : public Carrier {
 public:
  // `stream` must outlive the carrier. mtu: the longest frame in bytes, the same at both ends.
  ByteCarrier(ByteStream& stream, std::uint32_t mtu) : stream_(&stream), mtu_(mtu) {}

  [[nodiscard]] std::uint32_t mtu() const override { return mtu_; }
  [[nodiscard]] Status send(const std::uint8_t* frame, std::uint32_t size) override;
  // Takes at most 2 * mtu() bytes from the stream.
  [[nodiscard]] std::uint32_t receive(std::uint8_t* frame) override;
  [[nodiscard]] bool down() const override { return stream_->down(); }

 private:
  [[nodiscard]] std::uint32_t end_of_frame();

  ByteStream* stream_;
  std::uint32_t mtu_;
  std::uint32_t sent_ = 0;   // sending: bytes of the frame already sent
  std::uint8_t run_ = 0;     // bytes of the current non-zero run still to send
  bool zero_after_ = false;  // the current run is followed by a zero of the frame
  bool begun_ = false;       // the current run's length byte has been sent
  bool ending_ = false;      // the byte 0 that ends the frame is still to be sent
  std::uint32_t size_ = 0;   // receiving: bytes of the frame in the caller's buffer
  std::uint8_t left_ = 0;    // bytes of the current run still to arrive
  bool zero_ = false;        // the current run ends with a zero if another run follows
  bool bad_ = false;         // the frame is damaged
};

}  // namespace espalier

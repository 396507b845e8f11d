#pragma once
// Carries frames over a stream of bytes (a UART, a tty, a stream socket) with consistent overhead
// byte stuffing. Freestanding.
//
// Source: S. Cheshire, M. Baker: Consistent Overhead Byte Stuffing, IEEE/ACM Transactions on
// Networking 7(2), 1999. A stuffed frame contains no byte 0, and a 0 ends it. Therefore, after any
// loss or damage, the frame after the next 0 is decoded correctly. Stuffing costs 2 bytes per
// frame, and 1 more per 254 bytes without a zero.

#include <cstdint>

#include "espalier/hal/serial/carrier.h"

namespace espalier {

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

// Has no buffer: it stuffs directly from the caller's frame and unstuffs directly into it.
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

#pragma once
// Frames over a stream of bytes (a UART, a tty, a stream socket) by consistent overhead byte
// stuffing: S. Cheshire, M. Baker: Consistent Overhead Byte Stuffing, IEEE/ACM Transactions on
// Networking 7(2), 1999. No byte of a stuffed frame is 0, and a 0 ends it; so whatever was lost or
// damaged, the frame after the next 0 is read right. It costs 2 bytes a frame, and 1 more for each
// 254 bytes without a zero. Freestanding.

#include <cstdint>

#include "espalier/hal/serial/carrier.h"

namespace espalier {

// Of the frames of boards and hosts over bytes, at both ends.
inline constexpr std::uint32_t kByteMtu = 512;

// A device that moves single bytes. No call waits.
class ByteStream {
 public:
  // False: the device has no room now.
  [[nodiscard]] virtual bool put(std::uint8_t byte) = 0;
  // False: none has come.
  [[nodiscard]] virtual bool get(std::uint8_t& byte) = 0;
  // The device is broken, for good.
  [[nodiscard]] virtual bool down() const { return false; }

 protected:
  ~ByteStream() = default;
};

// Has no buffer of its own: it stuffs from the caller's frame, and unstuffs into it.
class ByteCarrier final : public Carrier {
 public:
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
  // Sending: bytes of the frame that have gone; of the run of non-zero bytes that has begun, those
  // still to go, and whether a zero ends it; whether a run has begun, or the frame's end is to go.
  std::uint32_t sent_ = 0;
  std::uint8_t run_ = 0;
  bool zero_after_ = false;
  bool begun_ = false;
  bool ending_ = false;
  // Receiving: bytes of the frame that are there; of the run, those still to come; whether it
  // stands for a zero at its end, once another run follows; whether the frame is damaged.
  std::uint32_t size_ = 0;
  std::uint8_t left_ = 0;
  bool zero_ = false;
  bool bad_ = false;
};

}  // namespace espalier

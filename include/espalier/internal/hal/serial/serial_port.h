#pragma once
// One carrier and all links that share it. Freestanding.

#include <cstdint>

#include "espalier/hal/serial/carrier.h"
#include "espalier/internal/hal/serial/serial_link.h"

namespace espalier {

inline namespace ESPALIER_SERIAL_BUILD {
// The parameters of SerialPort.
struct SerialPortConfig {
  // How long to wait for a reply before sending again. The time doubles after each attempt until it
  // is at least 268 ms; its upper limit is thus max(resend_ns, 537 ms). resend_ns must exceed the
  // time in which the carrier moves two of its longest frames and the peer is polled; otherwise
  // frames are sent again while their replies are on the way. Ethernet: 5 ms; a UART of 115200 baud
  // with frames of 512 bytes: 200 ms, of 19200 baud: 1 s.
  std::uint64_t resend_ns = 5'000'000;
  // Maximum number of data frames in flight per link, 1 .. 255. Choose it so that the peer's device
  // can hold the data frames of all links.
  std::uint32_t frames_in_flight = 4;
};

// A carrier, and the links that take turns to send over it. Each SerialLinks joins its port when it
// is constructed.
class SerialPort {
 public:
  // The carrier and the clock must outlive the port. buffer: 2 * carrier.mtu() bytes, word-aligned.
  // If status() is not kOk, its owners have no links. Boards do not check.
  SerialPort(Carrier& carrier, Clock& clock, std::uint8_t* buffer, const SerialPortConfig& config);
  SerialPort(const SerialPort&) = delete;
  SerialPort& operator=(const SerialPort&) = delete;

#if __STDC_HOSTED__
  // kBadArgument: the carrier's mtu() is less than serial::kMinMtu, or the frames in flight are not
  // 1 .. 255.
  [[nodiscard]] Status status() const { return status_; }
#endif
  // Takes one frame from the carrier and hands it to its link. False: none has arrived. A frame for
  // no link here (damaged, another protocol, an unknown channel) is dropped, and the result is
  // true.
  bool receive();
  // Sends one frame; the links take turns. False: there is nothing to send, or the carrier has no
  // room.
  bool transmit();
  static constexpr int kFramesPerPoll = 8;  // calls of receive(), and of transmit(), per poll()
  // Calls receive() until nothing has arrived, then transmit() until nothing more can be sent, at
  // most kFramesPerPoll times each. Returns whether any frame moved. For owners that take many
  // frames at once. Owners that examine the effect of each frame call receive() and transmit()
  // themselves.
  bool poll();

  // Returns the clock's time, ns.
  [[nodiscard]] std::uint64_t now() { return clock_->now(); }
  // Transmits, then waits until a frame may have arrived, a frame must be sent again, or `until`.
  void wait(std::uint64_t until);

 private:
  friend class SerialLinks;
  // Unit of the clock: 1024 ns. Counts modulo 2^32.
  using Ticks = std::uint32_t;

  void join(SerialLinks& owner);
  [[nodiscard]] Ticks ticks();
  [[nodiscard]] std::uint32_t next_frame(Ticks now);

  Carrier* carrier_;
  Clock* clock_;
  std::uint8_t* in_;
  std::uint8_t* out_;
  SerialLinks* owners_ = nullptr;
  SerialLinks* turn_ = nullptr;  // owner of the link that sends next
  std::uint32_t turn_link_ = 0;  // that link
  std::uint32_t waiting_ = 0;    // bytes of the frame in out_ for which the carrier had no room
  Ticks resend_;
  std::uint8_t frames_in_flight_;
  bool down_ = false;
#if __STDC_HOSTED__
  Status status_ = Status::kOk;
#endif
};
}  // namespace ESPALIER_SERIAL_BUILD

}  // namespace espalier

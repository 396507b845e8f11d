#pragma once
// One carrier and all the links that share it. Freestanding.

#include <cstdint>

#include "espalier/hal/serial/carrier.h"
#include "espalier/hal/serial/serial_link.h"

namespace espalier {

struct SerialPortConfig {
  // How long an answer may take until what was sent is sent again; twice as long after each time,
  // up to 64 times. Longer than the carrier needs for two of its longest frames and the other end
  // to be polled: Ethernet 5 ms; a UART of 115200 baud with frames of 512 bytes 200 ms.
  std::uint64_t resend_ns = 5'000'000;
  // Frames with data of one link on their way at a time, 1 .. 255: what the other end's device can
  // hold, over all links.
  std::uint32_t frames_in_flight = 4;
};

class SerialPort {
 public:
  // Carrier and clock outlive the port. buffer: 2 * carrier.mtu() bytes, at a word.
  SerialPort(Carrier& carrier, Clock& clock, std::uint8_t* buffer, const SerialPortConfig& config);
  SerialPort(const SerialPort&) = delete;
  SerialPort& operator=(const SerialPort&) = delete;

  // Takes one frame from the carrier and hands it to its link. False: none has come. What is no
  // frame of a link here (damaged, another protocol, an unknown channel) is dropped: true.
  bool receive();
  // Sends one frame, of the links in turn. False: nothing is to be sent, or no room.
  bool transmit();
  // receive() until nothing has come, then transmit() until nothing is to be sent, at most
  // kFramesPerPoll of each. Whether anything was moved. For owners that take many frames; those
  // that look at each frame's effect call receive() and transmit() themselves.
  static constexpr int kFramesPerPoll = 8;
  bool poll();

  [[nodiscard]] std::uint64_t now() { return clock_->now(); }
  // Transmits, then waits until something may have come, a frame is to be sent again, or `until`.
  void wait(std::uint64_t until);

 private:
  friend class SerialLinks;
  // Of the clock: 1024 ns, modulo 2^32.
  using Ticks = std::uint32_t;

  void join(SerialLinks& owner);
  [[nodiscard]] Ticks ticks();
  [[nodiscard]] std::uint32_t next_frame(Ticks now);

  Carrier* carrier_;
  Clock* clock_;
  std::uint8_t* in_;
  std::uint8_t* out_;
  SerialLinks* owners_ = nullptr;
  SerialLinks* turn_ = nullptr;  // whose link is next to send,
  std::uint32_t turn_link_ = 0;  // and which
  std::uint32_t waiting_ = 0;    // bytes of the frame in out_ for which the carrier had no room
  Ticks resend_;
  std::uint8_t frames_in_flight_;
  bool down_ = false;
};

}  // namespace espalier

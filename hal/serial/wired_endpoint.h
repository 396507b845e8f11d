#pragma once
// An Endpoint whose links have a carrier each: a UART per neighbour, instead of one carrier for all
// links (serial_endpoint.h). Both ends of a link must be of this kind. Freestanding; uses only the
// caller's memory.

#include "espalier/hal/endpoint.h"
#include "espalier/hal/serial/serial_endpoint.h"
#include "espalier/internal/hal/serial/serial_port.h"

namespace espalier {

inline namespace ESPALIER_SERIAL_BUILD {
// The clock of the wires of one endpoint. They do not wait one after the other: each notes until
// when it could, and the endpoint waits once.
class WiredClock final : public Clock {
 public:
  // `clock` must outlive this one.
  explicit WiredClock(Clock& clock) : clock_(&clock) {}
  [[nodiscard]] std::uint64_t now() override { return clock_->now(); }
  void wait(std::uint64_t until) override {
    ++noted_;
    if (until < until_) until_ = until;
  }

 private:
  friend class WiredEndpoint;
  Clock* clock_;
  std::uint64_t until_ = 0;
  std::uint32_t noted_ = 0;
};

// A link with a carrier of its own. It must never move.
class SerialWire {
 public:
  // The carrier and the clock must outlive the wire. buffer: 2 * carrier.mtu() bytes, word-aligned.
  // config.first_channel is the same at both ends; config.settles is ignored.
  SerialWire(Carrier& carrier, WiredClock& clock, std::uint8_t* buffer, std::uint32_t node,
             std::uint32_t peer, const SerialPortConfig& port_config, const SerialConfig& config)
      : peer_(peer),
        port_(carrier, clock, buffer, port_config),
        endpoint_(port_, &link_, &peer_, 1, node, config) {}
  SerialWire(const SerialWire&) = delete;
  SerialWire& operator=(const SerialWire&) = delete;

 private:
  friend class WiredEndpoint;
  std::uint32_t peer_;
  SerialLink link_{};
  SerialPort port_;
  SerialEndpoint endpoint_;
};

// Link l is wires[l].
class WiredEndpoint final : public Endpoint {
 public:
  // wires: 1 .. kMaxLinks of them, all with `clock`. Both must outlive the endpoint.
  WiredEndpoint(WiredClock& clock, SerialWire* wires, std::uint32_t count, std::uint32_t node)
      : clock_(&clock), wires_(wires), count_(count), node_(node) {}

  [[nodiscard]] std::uint32_t node() const override { return node_; }
  [[nodiscard]] std::uint32_t links() const override { return count_; }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override { return wires_[link].peer_; }
  [[nodiscard]] std::uint32_t window() const override { return wires_[0].endpoint_.window(); }
  [[nodiscard]] std::uint64_t eager_bytes() const override {
    return wires_[0].endpoint_.eager_bytes();
  }
  // Keeps no reference to the regions: any memory may be used.
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override {
    return wires_[0].endpoint_.prepare(regions, count);
  }
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override;
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override;
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override;
  // Takes at most SerialPort::kFramesPerPoll frames from each wire, and sends as many.
  [[nodiscard]] bool poll(Completion& completion) override;
  void release() override;
  [[nodiscard]] std::uint64_t now() override { return clock_->now(); }
  void wait(std::uint64_t until) override { clock_->clock_->wait(due(until)); }

  // Sends what the wires have to send. Returns the time until which wait(until) would wait: `until`
  // or earlier.
  [[nodiscard]] std::uint64_t due(std::uint64_t until);

 private:
  WiredClock* clock_;
  SerialWire* wires_;
  std::uint32_t count_;
  std::uint32_t node_;
  std::uint32_t first_ = 0;  // the wire that the next poll looks at first
};
}  // namespace ESPALIER_SERIAL_BUILD

}  // namespace espalier

#pragma once
// For tests: the gateway's part of a board, in virtual time. Host only.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "firmware/gateway/bridge.h"
#include "hal/serial/testing/hub.h"

namespace espalier::gateway {

[[nodiscard]] inline SerialConfig serial_config(std::uint32_t window, std::uint32_t session) {
  return {.session = session, .window = window};
}

// The gateway's end of a board's carrier, and the bridge.
class JoinedBoard {
 public:
  JoinedBoard(serial::Hub& hub, std::uint32_t end, Endpoint& fabric, std::uint32_t window,
              const SerialPortConfig& port_config = {})
      : buffer_(hub.carrier(end).mtu() / 2 + 1),
        links_(fabric.links()),
        port_(hub.carrier(end), hub.clock(end), reinterpret_cast<std::uint8_t*>(buffer_.data()),
              port_config),
        bridge_(port_, links_.data(), fabric, shape(fabric.links()), settled(window, end)) {
    hub.add(end, port_);
    EXPECT_EQ(bridge_.prepare(), Status::kOk);
  }
  bool step() {
    const bool received = port_.poll();
    const bool progress = bridge_.step();
    EXPECT_EQ(bridge_.fault(), "");
    return port_.poll() || received || progress;
  }

 private:
  static Bridge::Shape shape(std::uint32_t links) {
    Bridge::Shape shape;
    // Reverse the fabric's links, so that a test detects confused link numbers.
    for (std::uint32_t link = 0; link < links; ++link) {
      shape.fabric_links.push_back(links - 1 - link);
    }
    shape.reports_unexpected.assign(links, true);
    shape.block_bytes = links == 1 ? 4 << 20 : 1 << 17;  // the longest message of the tests
    return shape;
  }
  static SerialConfig settled(std::uint32_t window, std::uint32_t session) {
    SerialConfig config = serial_config(window, 500 + session);
    config.settles = true;
    return config;
  }

  std::vector<std::uint32_t> buffer_;
  std::vector<SerialLink> links_;
  SerialPort port_;
  Bridge bridge_;
};

}  // namespace espalier::gateway

#pragma once
// For tests: a board's gateway in virtual time. Host only.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "firmware/gateway/bridge.h"
#include "hal/serial/testing/hub.h"

namespace espalier::gateway {

[[nodiscard]] inline SerialConfig serial_config(std::uint32_t window, std::uint32_t session) {
  SerialConfig config;
  config.session = session;
  config.window = window;
  return config;
}

// What a gateway has of a board: its end of the carrier, and the bridge.
class Joined {
 public:
  Joined(serial::Hub& hub, std::uint32_t end, Endpoint& fabric, std::uint32_t window)
      : buffer_(hub.carrier(end).mtu() / 2 + 1),
        links_(fabric.links()),
        port_(hub.carrier(end), hub.clock(end), reinterpret_cast<std::uint8_t*>(buffer_.data()),
              SerialPortConfig()),
        bridge_(port_, links_.data(), fabric, shape(fabric.links()), settled(window, end)) {
    hub.add(end, port_);
    EXPECT_EQ(bridge_.prepare(), Status::kOk);
  }
  bool step() {
    const bool took = port_.poll();
    const bool moved = bridge_.step();
    EXPECT_EQ(bridge_.fault(), "");
    return port_.poll() || took || moved;
  }

 private:
  static Bridge::Shape shape(std::uint32_t links) {
    Bridge::Shape shape;
    // The fabric's links lie the other way round, so that a mix-up shows.
    for (std::uint32_t link = 0; link < links; ++link) {
      shape.fabric_links.push_back(links - 1 - link);
    }
    shape.reports_unexpected.assign(links, true);
    shape.block_bytes = links == 1 ? 4 << 20 : 1 << 17;  // the longest that the tests send
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

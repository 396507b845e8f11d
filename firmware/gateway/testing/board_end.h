#pragma once
// The board's end of a gateway's device. For tests that play the board.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "espalier/hal/serial/serial_endpoint.h"
#include "firmware/bare/agent.h"
#include "hal/serial/host/carriers.h"

namespace espalier::gateway {

// An endpoint with the agent's channel, over the sockets "board" and "gateway" in `folder`. The
// gateway's device is unix:FOLDER/gateway,FOLDER/board.
class BoardEnd {
 public:
  explicit BoardEnd(const std::string& folder)
      : carrier_(or_throw(open_board_carrier("unix:" + folder + "/board," + folder + "/gateway"))),
        frames_(2 * carrier_->mtu() / 8 + 1),
        port_(*carrier_, clock_, reinterpret_cast<std::uint8_t*>(frames_.data()), {}),
        endpoint_(port_, links_, &agent::kGateway, 1, agent::kNoNode, config()) {
    clock_.add(*carrier_);
  }
  BoardEnd(const BoardEnd&) = delete;
  BoardEnd& operator=(const BoardEnd&) = delete;

  [[nodiscard]] SerialPort& port() { return port_; }
  [[nodiscard]] SerialEndpoint& endpoint() { return endpoint_; }

 private:
  static SerialConfig config() {
    return {.session = 77, .first_channel = agent::kChannel, .window = agent::kWindow};
  }

  std::unique_ptr<HostCarrier> carrier_;
  HostClock clock_;
  std::vector<std::uint64_t> frames_;
  SerialPort port_;
  SerialLink links_[1] = {};
  SerialEndpoint endpoint_;
};

}  // namespace espalier::gateway

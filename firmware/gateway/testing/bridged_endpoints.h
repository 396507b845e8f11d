#pragma once
// For tests: boards behind bridges, in virtual time: board, serial link, bridge, fabric, bridge,
// serial link, board. Host only.

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "firmware/gateway/testing/joined_board.h"
#include "hal/conformance/conformance.h"
#include "hal/forwarding_endpoint.h"

namespace espalier::gateway {

// A board's endpoint. Its wait() also steps the gateways, which are separate processes in a real
// cluster.
class BridgedEndpoint final : public ForwardingEndpoint {
 public:
  BridgedEndpoint(Endpoint& endpoint, std::function<bool()> gateways)
      : ForwardingEndpoint(endpoint), gateways_(std::move(gateways)) {}
  void wait(std::uint64_t until) override {
    if (!gateways_()) inner_->wait(until);
  }

 private:
  std::function<bool()> gateways_;
};

class BridgedEndpoints final : public conformance::ConnectedEndpoints {
 public:
  struct Ports {
    SerialPortConfig board, gateway;
  };
  // faults: between the boards and their gateways. The fabric has none.
  BridgedEndpoints(const conformance::EndpointsSpec& spec, const serial::CarrierFaults& faults,
                   const Ports& ports = {})
      : nodes_(static_cast<std::uint32_t>(spec.peers.size())),
        boards_hub_(carriers(spec), faults),
        fabric_hub_(backwards(spec), {}) {
    const auto fabric_peers = backwards(spec);
    for (std::uint32_t v = 0; v < nodes_; ++v) {
      fabric_.emplace_back(fabric_hub_, v, fabric_peers[v], serial_config(spec.window, 100 + v));
      boards_.emplace_back(boards_hub_, v, spec.peers[v], serial_config(spec.window, 200 + v),
                           ports.board);
      joined_.emplace_back(boards_hub_, nodes_ + v, fabric_.back().endpoint(), spec.window,
                           ports.gateway);
      seen_.emplace_back(boards_.back().endpoint(), [this] { return step_gateways(); });
    }
  }
  Endpoint& endpoint(std::uint32_t node) override { return seen_[node]; }
  bool progress() override { return progress(UINT64_MAX); }
  // Lets time pass, at most until `until`.
  bool progress(std::uint64_t until) { return step_gateways() || boards_hub_.advance(until); }
  [[nodiscard]] std::uint64_t now() const { return boards_hub_.now(); }
  // The board falls silent.
  void cut(std::uint32_t board) { boards_hub_.cut(board); }

 private:
  // Returns the peers of the boards, then of their gateways. All channels of a carrier lead to the
  // same end.
  static std::vector<std::vector<std::uint32_t>> carriers(const conformance::EndpointsSpec& spec) {
    const auto nodes = static_cast<std::uint32_t>(spec.peers.size());
    std::vector<std::vector<std::uint32_t>> ends(2 * spec.peers.size());
    for (std::uint32_t v = 0; v < nodes; ++v) {
      ends[v].assign(spec.peers[v].size(), nodes + v);
      ends[nodes + v].assign(spec.peers[v].size(), v);
    }
    return ends;
  }
  static std::vector<std::vector<std::uint32_t>> backwards(const conformance::EndpointsSpec& spec) {
    std::vector<std::vector<std::uint32_t>> peers;
    for (const auto& row : spec.peers) peers.emplace_back(row.rbegin(), row.rend());
    return peers;
  }

  // Steps everything except the boards.
  bool step_gateways() {
    bool progress = false;
    for (JoinedBoard& each : joined_) progress = each.step() || progress;
    return progress || fabric_hub_.advance(UINT64_MAX);
  }

  std::uint32_t nodes_;
  serial::Hub boards_hub_, fabric_hub_;
  std::deque<serial::SerialNode> boards_, fabric_;
  std::deque<JoinedBoard> joined_;
  std::deque<BridgedEndpoint> seen_;
};

}  // namespace espalier::gateway

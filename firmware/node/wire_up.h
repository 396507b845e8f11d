#pragma once
// The address exchange of a node that `espalier run` started. Host only.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"
#include "espalier/hal/ofi/wire_up.h"

namespace espalier::node {

// Over the control channel: Hello, then Peers.
class ControlWireUp : public ofi::WireUp {
 public:
  // pid: the process that the launcher treats as the node; 0: this process.
  explicit ControlWireUp(int channel, std::int32_t pid = 0) : channel_(channel), pid_(pid) {}
  [[nodiscard]] Result<void> publish(std::uint32_t node, const std::vector<std::string>& addresses,
                                     const std::vector<std::uint32_t>& peers) override;
  [[nodiscard]] Result<std::vector<std::string>> collect() override;
  [[nodiscard]] const ofi::Secret* secret() const override { return &secret_; }

 private:
  int channel_;
  std::int32_t pid_;
  std::uint32_t lanes_ = 0;
  ofi::Secret secret_ = {};
};

// Connects the endpoints of one node, all with links to the same peers: exchanges the addresses of
// all of them at once, in this order, which must be the same on all nodes. Errors: those of
// ofi::connect(); the launcher is gone.
[[nodiscard]] Result<void> connect_all(std::span<ofi::OfiEndpoint* const> endpoints,
                                       std::uint32_t node, int channel, ControlWireUp& wire_up);

}  // namespace espalier::node

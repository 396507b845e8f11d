#pragma once
// The address exchange of a node that `espalier run` started. Host only.

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace espalier::node

#pragma once
// The address exchange of a node that `espalier run` started. Host only.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::node {

// Over the control channel: Hello, then Peers.
class ControlWireUp : public ofi::WireUp {
 public:
  // pid: the process that the launcher treats as the node; 0: this process.
  explicit ControlWireUp(int channel, std::int32_t pid = 0) : channel_(channel), pid_(pid) {}
  // Says in Hello which release the node booted.
  void set_release(std::uint32_t release, std::uint64_t digest) {
    release_ = release;
    release_digest_ = digest;
  }
  // Sets the function that is called ten times a second while collect() waits.
  void on_wait(std::function<void()> call) { wait_ = std::move(call); }
  [[nodiscard]] Result<void> publish(std::uint32_t node, const std::vector<std::string>& addresses,
                                     const std::vector<std::uint32_t>& peers) override;
  [[nodiscard]] Result<std::vector<std::string>> collect() override;
  [[nodiscard]] const ofi::Secret* secret() const override { return &secret_; }

 private:
  int channel_;
  std::function<void()> wait_;
  std::int32_t pid_;
  std::uint32_t lanes_ = 0;
  std::uint32_t release_ = 0;
  std::uint64_t release_digest_ = 0;
  ofi::Secret secret_ = {};
};

// The endpoints of one node, which all have links to the same peers: one for each generation
// (docs/spares.md), in the same order on all nodes.
using Endpoints = std::vector<std::shared_ptr<ofi::FixedLinks>>;
// Publishes the addresses of all of them at once.
[[nodiscard]] Result<void> publish_all(const Endpoints& endpoints, std::uint32_t node,
                                       ControlWireUp& wire_up);
// Collects the addresses and the job secret, and starts to connect all of them.
[[nodiscard]] Result<void> start_connecting_all(const Endpoints& endpoints, ControlWireUp& wire_up);
// Call until it returns true: all of them are connected.
[[nodiscard]] Result<bool> go_on_connecting_all(const Endpoints& endpoints);

}  // namespace espalier::node

#pragma once
// The address exchange of a Linux node with its neighbours. There is one implementation per kind of
// launcher: here the control channel. For a process manager (PMIx, PMI) implement WireUp. Host
// only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::node {

class WireUp {
 public:
  virtual ~WireUp() = default;
  // Publishes the address of each lane of `node`, and the peer at its other end. Errors: too
  // many or too long addresses, or the launcher is gone.
  [[nodiscard]] virtual Result<void> publish(std::uint32_t node,
                                             const std::vector<std::string>& addresses,
                                             const std::vector<std::uint32_t>& peers) = 0;
  // Waits for the address at the other end of each published lane, in the order of the lanes. All
  // nodes of a process must publish before the first of them collects. Error: the launcher is gone.
  [[nodiscard]] virtual Result<std::vector<std::string>> collect() = 0;
};

// Over the control channel: Hello, then Peers.
class ControlWireUp : public WireUp {
 public:
  // pid: the process that the launcher treats as the node; 0: this process.
  explicit ControlWireUp(int channel, std::int32_t pid = 0) : channel_(channel), pid_(pid) {}
  [[nodiscard]] Result<void> publish(std::uint32_t node, const std::vector<std::string>& addresses,
                                     const std::vector<std::uint32_t>& peers) override;
  [[nodiscard]] Result<std::vector<std::string>> collect() override;

 private:
  int channel_;
  std::int32_t pid_;
  std::uint32_t lanes_ = 0;
};

}  // namespace espalier::node

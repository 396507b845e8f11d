#pragma once
// How a Linux node learns where its neighbours are. One implementation a launcher: here the control
// channel; a process manager (PMIx, PMI) joins by implementing WireUp. Host only.

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::node {

class WireUp {
 public:
  virtual ~WireUp() = default;
  // Publishes this node's address and waits for those of `peers`, in their order. False and one
  // line in `error` if the launcher is gone or the addresses cannot be had.
  [[nodiscard]] virtual bool exchange(std::uint32_t node, const std::string& address,
                                      const std::vector<std::uint32_t>& peers,
                                      std::vector<std::string>& addresses, std::string& error) = 0;
};

// Over the control channel: Hello, then Peers.
class ControlWireUp : public WireUp {
 public:
  explicit ControlWireUp(int channel) : channel_(channel) {}
  [[nodiscard]] bool exchange(std::uint32_t node, const std::string& address,
                              const std::vector<std::uint32_t>& peers,
                              std::vector<std::string>& addresses, std::string& error) override;

 private:
  int channel_;
};

}  // namespace espalier::node

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
  // Publishes the addresses of a node's lanes, and the nodes at their other ends. False and one
  // line in `error` if the launcher is gone.
  [[nodiscard]] virtual bool publish(std::uint32_t node, const std::vector<std::string>& addresses,
                                     const std::vector<std::uint32_t>& peers,
                                     std::string& error) = 0;
  // Waits for the addresses of the other ends of the lanes that were published, in their order;
  // nodes of one process publish all before any collects. False and one line in `error` if they
  // cannot be had.
  [[nodiscard]] virtual bool collect(std::vector<std::string>& addresses, std::string& error) = 0;
};

// Over the control channel: Hello, then Peers.
class ControlWireUp : public WireUp {
 public:
  // pid: what the launcher is told to be the node's process; 0: this one.
  explicit ControlWireUp(int channel, std::int32_t pid = 0) : channel_(channel), pid_(pid) {}
  [[nodiscard]] bool publish(std::uint32_t node, const std::vector<std::string>& addresses,
                             const std::vector<std::uint32_t>& peers, std::string& error) override;
  [[nodiscard]] bool collect(std::vector<std::string>& addresses, std::string& error) override;

 private:
  int channel_;
  std::int32_t pid_;
  std::uint32_t lanes_ = 0;
};

}  // namespace espalier::node

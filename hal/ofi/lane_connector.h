#pragma once
// Connects the lanes of an endpoint: makes their addresses, reads those of the peers, greets.

#include <cstdint>
#include <string>
#include <vector>

#include "hal/ofi/endpoint_state.h"

namespace espalier::ofi {

class LaneConnector {
 public:
  explicit LaneConnector(EndpointState& state) : state_(state) {}

  // As OfiEndpoint::addresses().
  [[nodiscard]] std::vector<std::string> addresses() const;
  // Takes the addresses of the other ends and starts the greeting. Errors: not one address per
  // lane, a wrong address.
  [[nodiscard]] Result<void> start(const std::vector<std::string>& addresses);
  // Whether all lanes are connected. Progress the endpoint between two calls. Errors: a link broke,
  // or a peer did not connect in time.
  [[nodiscard]] Result<bool> check();

 private:
  [[nodiscard]] Result<void> decode(Lane& lane, const std::string& address);
  void greet();

  EndpointState& state_;
  std::uint64_t greet_until_ns_ = 0;
};

}  // namespace espalier::ofi

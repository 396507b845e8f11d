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
  // Takes the addresses of the other ends and starts the greeting. kBadArgument: not one address
  // per lane; kBackEnd: a wrong address. Both with one line in `error`.
  [[nodiscard]] Status start(const std::vector<std::string>& addresses, std::string& error);
  // Whether all lanes are connected: kOk, kBusy, or kBackEnd with one line in `error`. Progress the
  // endpoint between two calls.
  [[nodiscard]] Status check(std::string& error);

 private:
  [[nodiscard]] bool decode(Lane& lane, const std::string& address, std::string& error);
  void greet();

  EndpointState& state_;
  std::uint64_t greet_until_ns_ = 0;
};

}  // namespace espalier::ofi

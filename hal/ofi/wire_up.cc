#include "espalier/hal/ofi/wire_up.h"

namespace espalier::ofi {

Status connect(OfiEndpoint& endpoint, std::uint32_t node, WireUp& wire_up, std::string& error) {
  std::vector<std::string> addresses;
  if (!wire_up.publish(node, endpoint.addresses(), endpoint.lane_peers(), error) ||
      !wire_up.collect(addresses, error)) {
    return Status::kBackEnd;
  }
  const Status status = endpoint.connect(addresses, error);
  if (status != Status::kOk) error = "cannot connect to the neighbours: " + error;
  return status;
}

}  // namespace espalier::ofi

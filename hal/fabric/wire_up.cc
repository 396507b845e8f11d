#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::ofi {

Result<void> FixedLinks::connect(const std::vector<std::string>& addresses) {
  if (auto started = start_connecting(addresses); !started) return started;
  while (true) {
    const auto connected = go_on_connecting();
    if (!connected) return fail(connected.error());
    if (*connected) return {};
    endpoint().wait(endpoint().now() + 1'000'000);
  }
}

Result<void> connect(FixedLinks& endpoint, std::uint32_t node, WireUp& wire_up) {
  auto published = wire_up.publish(node, endpoint.addresses(), endpoint.lane_peers());
  if (!published) return published;
  const auto addresses = wire_up.collect();
  if (!addresses) return fail(addresses.error());
  if (const Secret* const secret = wire_up.secret(); secret != nullptr) {
    if (auto set = endpoint.set_secret(*secret); !set) return set;
  }
  const auto connected = endpoint.connect(*addresses);
  if (connected) return {};
  return fail("cannot connect to the neighbours: " + connected.error().message);
}

}  // namespace espalier::ofi

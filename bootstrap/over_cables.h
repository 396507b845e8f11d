#pragma once
// How join() begins a membership over cables (bootstrap/cables/membership.cc). Host only.

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/network/filter.h"
#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::bootstrap {

struct CablesPlace {
  std::uint32_t rank = 0, size = 1;
  JobSecret secret = {};
  network::InterfaceFilter interfaces = {};
  network::PortRange ports = {};
};

// Waits until all ranks have joined and agree on their hosts and cables. Errors: a rank twice, or
// another size; ranks that are missing at the deadline; cables that do not connect all ranks; no
// socket.
[[nodiscard]] Result<std::unique_ptr<Bootstrap>> join_over_cables(
    const CablesPlace& place, std::chrono::milliseconds deadline);

}  // namespace espalier::bootstrap

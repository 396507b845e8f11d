#pragma once
// How the nodes of a cluster learn each other's addresses: each opens its endpoint, publishes the
// addresses of its lanes, collects those of its neighbours, and connects. Host only.
//
// A launcher carries the addresses, so there is one WireUp per kind of launcher: implement it for a
// process manager (PMIx, PMI), MPI, or any other. espalier-node has one for `espalier run`.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/hal/ofi/ofi_endpoint.h"

namespace espalier::ofi {

// The address exchange of one node with its neighbours.
class WireUp {
 public:
  virtual ~WireUp() = default;
  // Publishes the address of each lane of `node`, and the peer at its other end. Errors: too many
  // or too long addresses, or the launcher is gone.
  [[nodiscard]] virtual Result<void> publish(std::uint32_t node,
                                             const std::vector<std::string>& addresses,
                                             const std::vector<std::uint32_t>& peers) = 0;
  // Waits for the address at the other end of each published lane (other_end() in address.h), in
  // the order of the lanes. All nodes of a thread must publish before the first of them collects.
  // Error: the launcher is gone.
  [[nodiscard]] virtual Result<std::vector<std::string>> collect() = 0;
  // Returns the job secret, once collect() has returned; null: the launcher gave none.
  [[nodiscard]] virtual const Secret* secret() const { return nullptr; }
};

// Connects the endpoint of `node` to its neighbours: publishes its addresses, collects theirs and
// connects. The neighbours must do the same at the same time, each in its own process or thread.
// Errors: those of `wire_up` and of OfiEndpoint::connect().
[[nodiscard]] Result<void> connect(OfiEndpoint& endpoint, std::uint32_t node, WireUp& wire_up);

}  // namespace espalier::ofi

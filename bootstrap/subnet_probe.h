#pragma once
// Short connections that show which addresses reach which. Host only.

#include <cstddef>
#include <string>
#include <vector>

#include "base/network/address.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {

// A connection from an address of this host to one at which another host listens.
struct ProbeOf {
  std::size_t number = 0;  // of what it proves
  network::Address from, to;
};

// Starts the connection, without waiting. Returns a socket without a descriptor if it cannot be.
[[nodiscard]] Socket start_probe(const ProbeOf& probe);
// Returns what became of a connection that was started: 0, or errno.
[[nodiscard]] int error_of(const Socket& socket);

// Opens all connections side by side and closes them. Returns the numbers of those that were not
// there within 0.5 s. A process that has no descriptor left proves nothing.
[[nodiscard]] std::vector<std::size_t> failed_probes(const std::vector<ProbeOf>& probes);

// Returns "10.0.0.7:4000 (eth0: no route to host)": whether "HOST:PORT" can be reached now, and by
// which interface. Takes at most 0.3 s.
[[nodiscard]] std::string reach_text(const std::string& address);

}  // namespace espalier::bootstrap

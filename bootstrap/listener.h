#pragma once
// Where a rendezvous server listens. Host only.

#include <string>

#include "base/network/address.h"
#include "base/network/filter.h"
#include "bootstrap/stream.h"
#include "espalier/base/result.h"

namespace espalier::bootstrap {

struct Listener {
  Socket socket;
  network::Address bound;  // the address, or the wildcard, and the port
};

// Listens at HOST:PORT. An address is taken as it is. A name of this host, except localhost, may
// resolve to 127.0.1.1 here, and to another address elsewhere: then all addresses of this host
// serve, of both families. Port 0: one of `ports`.
// Errors: the address is malformed or not of this host; the port, or each of the range, is in use
// (is_in_use says so).
[[nodiscard]] Result<Listener> listen_at(const std::string& address,
                                         const network::PortRange& ports, bool& is_in_use);

}  // namespace espalier::bootstrap

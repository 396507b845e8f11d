#pragma once
// Where a rendezvous server listens. Host only.

#include <chrono>
#include <string>

#include "base/network/address.h"
#include "base/network/filter.h"
#include "base/network/lookup.h"
#include "bootstrap/stream.h"
#include "espalier/base/result.h"

namespace espalier::bootstrap {

struct ListenOptions {
  network::PortRange ports = {};  // for port 0
  std::chrono::milliseconds lookup_time = network::kLookupTime;
  // A listener at all addresses takes connections to addresses of these only; empty: all. Its user
  // closes the others: takes() says which.
  network::InterfaceFilter interfaces = {};
};

struct Listener {
  Socket socket;
  network::Address bound;  // the address, or the wildcard, and the port
};

// Listens at HOST:PORT. An address is taken as it is. A name of this host, except localhost, may
// resolve to 127.0.1.1 here, and to another address elsewhere: then all addresses of this host
// serve, of both families.
// Errors: the address is malformed or not of this host; the resolver does not answer in time; the
// port, or each of the range, is in use (is_in_use says so).
[[nodiscard]] Result<Listener> listen_at(const std::string& address, const ListenOptions& options,
                                         bool& is_in_use);

// Whether a connection that a listener accepted came to an address of an interface that the filter
// leaves.
[[nodiscard]] bool takes(const network::InterfaceFilter& interfaces, const Socket& accepted);

}  // namespace espalier::bootstrap

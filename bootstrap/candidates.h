#pragma once
// The addresses at which a rendezvous server may be reached, and the ticket that carries them.
// Host only.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/network/interfaces.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::bootstrap {

// The addresses of a server, and the network (network_id()) in which they are its own.
struct Candidates {
  std::uint64_t network = 0;
  std::vector<network::Address> addresses = {};  // in the order in which they are tried
};

// Returns this host's addresses of these interfaces, at this port. The address at which the
// launcher's ssh reached this host comes first. Then come the addresses of cards, of bridges and
// of links to one peer, the link-local addresses, and the loopback interface.
[[nodiscard]] Candidates own_candidates(const std::vector<network::Interface>& interfaces,
                                        std::uint16_t port);

// An address to connect to.
struct Target {
  network::Address address;
  // Not empty: why it cannot be the server's. It is not tried.
  std::string refusal = {};
};

// Returns what this process tries, in order: first addresses on a link of one of its interfaces.
// The loopback is tried if the server is in the same network. Otherwise an address that this host
// has, too, is refused. A link-local address is tried by each interface.
[[nodiscard]] std::vector<Target> targets_of(const Candidates& server,
                                             const std::vector<network::Interface>& interfaces);

// What rank 0 hands to all: printable, without spaces, and at most 400 characters. The last
// addresses are left out if all are too many.
struct Ticket {
  JobSecret secret = {};
  Candidates server = {};
};
[[nodiscard]] std::string encode_ticket(const Ticket& ticket);
// Nothing: malformed.
[[nodiscard]] std::optional<Ticket> decode_ticket(const std::string& text);

}  // namespace espalier::bootstrap

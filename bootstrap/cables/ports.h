#pragma once
// The interfaces on which a host looks for its cables, and a socket for each. Host only.

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/network/filter.h"
#include "base/network/links.h"
#include "bootstrap/cables/discovery.h"
#include "bootstrap/stream.h"
#include "espalier/base/result.h"

namespace espalier::cables {

[[nodiscard]] Time now();
// From the system's source of random bytes.
[[nodiscard]] std::uint64_t random_number();
// Returns this host's name, as packets can carry it. Error: it has none.
[[nodiscard]] Result<std::string> own_name();

struct PortsOptions {
  network::InterfaceFilter filter = {};
  std::uint16_t port = 0;  // of UDP, at which packets to all hosts arrive
  // Whether other processes of this host may use the port, too: packets to this one alone then
  // arrive at another port of its own, which is of this range.
  bool is_shared = false;
  network::PortRange own_ports = {};
  bool needs_one = true;  // an interface that is up
};

class Ports {
 public:
  explicit Ports(PortsOptions options) : options_(std::move(options)) {}

  // Looks at the interfaces, and opens and closes sockets. Errors: a wrong name in the filter, or
  // no interface, at the first call; too many interfaces; the port is in use; no socket.
  [[nodiscard]] Result<std::vector<Port>> scan(Time at);
  // A packet that cannot be sent is lost like one on the cable.
  void send(const Discovery::Outgoing& packet);
  using Take = std::function<void(std::uint32_t port, const network::Address& from,
                                  const std::string& bytes)>;
  // Gives what has arrived, without waiting.
  void receive(const Take& take);
  void add_to(std::vector<pollfd>& polled) const;

 private:
  struct Sockets {
    bootstrap::Socket own = {};
    bootstrap::Socket group = {};  // of is_shared
  };
  [[nodiscard]] PortState state_of(const network::Link& link, Time at);
  [[nodiscard]] Result<Sockets> make_sockets(const network::Link& link) const;

  PortsOptions options_;
  std::map<std::uint32_t, Sockets> sockets_;  // by number of the interface
  bool has_scanned_ = false;
  std::map<std::uint32_t, Time> without_since_;  // interfaces without a usable address
};

}  // namespace espalier::cables

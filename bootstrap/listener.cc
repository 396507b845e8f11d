#include "bootstrap/listener.h"

#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/network/interfaces.h"
#include "base/try.h"
#include "bootstrap/first_word.h"

namespace espalier::bootstrap {
namespace {

using network::Address;

bool is_localhost(const std::string& host) {
  return strcasecmp(host.c_str(), "localhost") == 0 ||
         strncasecmp(host.c_str(), "localhost.", 10) == 0 ||
         strcasecmp(host.c_str(), "ip6-localhost") == 0;
}

bool is_own_name(const std::string& host, const std::vector<Address>& addresses) {
  if (network::parse_ip(host) || is_localhost(host)) return false;
  const auto interfaces = network::running_interfaces();
  return std::any_of(addresses.begin(), addresses.end(), [&](const Address& each) {
    return network::interface_of(each, interfaces) != nullptr;
  });
}

// Returns 0, or errno.
int bind_and_listen(const Address& address, Socket& listener) {
  Socket opened(
      socket(address.is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (opened.get() < 0) return errno;
  const int on = 1;
  (void)setsockopt(opened.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // The wildcard of IPv6 serves IPv4, too.
  const int is_v6_only = address.is_wildcard() ? 0 : 1;
  if (address.is_v6) {
    (void)setsockopt(opened.get(), IPPROTO_IPV6, IPV6_V6ONLY, &is_v6_only, sizeof is_v6_only);
  }
  sockaddr_storage where;
  const socklen_t size = address.to_socket(where);
  if (bind(opened.get(), reinterpret_cast<sockaddr*>(&where), size) != 0) return errno;
  if (listen(opened.get(), 1024) != 0) return errno;
  listener = std::move(opened);
  return 0;
}

int bind_when_ready(const Address& address, Socket& listener) {
  const int error = bind_and_listen(address, listener);
  if (error != EADDRNOTAVAIL) return error;
  if (network::interface_of(address, network::running_interfaces()) == nullptr) return error;
  if (!network::await_address(address, Clock::now() + network::kTentativeTime)) return error;
  return bind_and_listen(address, listener);
}

}  // namespace

Result<Listener> listen_at(const std::string& address, const ListenOptions& options,
                           bool& is_in_use) {
  is_in_use = false;
  ESPALIER_TRY_TO(auto places, resolve_in_time(address, options.lookup_time));
  const std::uint16_t port = places.front().port;
  if (is_own_name(network::split(address)->host, places)) {
    // The second where IPv6 is off.
    places = {network::wildcard(true).with_port(port), network::wildcard(false).with_port(port)};
  }
  Listener listener;
  int error = 0;
  const auto listen_anywhere = [&](std::uint16_t number) {
    for (const Address& each : places) {
      error = bind_when_ready(each.with_port(number), listener.socket);
      listener.bound = each;
      const bool is_elsewhere = error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
      if (!is_elsewhere) break;
    }
    return error;
  };
  const auto taken = network::take_port(
      port == 0 ? options.ports : network::PortRange{.first = port, .last = port},
      "cannot listen at " + address, listen_anywhere);
  if (!taken) {
    is_in_use = error == EADDRINUSE;
    if (port == 0) return fail(taken.error());
    return fail("cannot listen at " + address + ": " + std::strerror(error));
  }
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  (void)getsockname(listener.socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  if (const auto here = Address::from_socket(reinterpret_cast<sockaddr*>(&bound))) {
    listener.bound.port = here->port;
  }
  return listener;
}

bool takes(const network::InterfaceFilter& interfaces, const Socket& accepted) {
  if (interfaces.is_empty()) return true;
  sockaddr_storage here = {};
  socklen_t size = sizeof here;
  if (getsockname(accepted.get(), reinterpret_cast<sockaddr*>(&here), &size) != 0) return false;
  const auto own = Address::from_socket(reinterpret_cast<sockaddr*>(&here));
  if (own && own->is_loopback()) return true;  // also while a named interface has no carrier
  const auto used = interfaces.apply(network::running_interfaces());
  return own && used && network::interface_of(*own, *used) != nullptr;
}

}  // namespace espalier::bootstrap

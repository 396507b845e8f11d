#include "firmware/node/lane_addresses.h"

#include <net/if.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"
#include "base/network/interfaces.h"
#include "base/network/links.h"
#include "base/one_line.h"
#include "base/try.h"

namespace espalier::node {
namespace {

constexpr long kPauseNs = 20'000'000;

// Returns the interface. Errors: there is none, it is down, it has another MTU.
Result<network::Link> find(const Link::Interface& wanted) {
  const std::string who = "interface " + one_line(wanted.name);
  const std::vector<network::Link> links = network::links_up();
  const auto link = std::find_if(links.begin(), links.end(), [&wanted](const network::Link& each) {
    return each.name == wanted.name;
  });
  if (link == links.end()) {
    if (if_nametoindex(wanted.name.c_str()) == 0) {
      char host[65] = "";
      (void)gethostname(host, sizeof host - 1);
      return fail(who + " does not exist on this host, " + one_line(host) +
                  "; expected the cable's interface here");
    }
    return fail(who + " is down; expected it up (ip link set " + one_line(wanted.name) + " up)");
  }
  if (wanted.mtu != 0 && link->mtu != wanted.mtu) {
    return fail(who + " has an MTU of " + std::to_string(link->mtu) + " bytes; expected " +
                std::to_string(wanted.mtu) + ", as the cables' file says");
  }
  if (link->link_local == network::LinkLocal::kOff) {
    return fail(who +
                " has no IPv6, and cables are used by link-local IPv6 addresses; expected IPv6");
  }
  return *link;
}

// Returns the link-local address that a socket can bind; nothing: there is none, or not yet.
std::optional<std::string> usable_address(const std::string& name) {
  for (const network::Interface& each : network::running_interfaces()) {
    if (each.name != name) continue;
    for (const network::InterfaceAddress& own : each.addresses) {
      const bool is_usable = own.address.needs_scope() &&
                             network::await_address(own.address, std::chrono::steady_clock::now());
      if (is_usable) return own.address.host();
    }
  }
  return std::nullopt;
}

Result<std::string> address_of(const Link::Interface& interface, std::uint64_t until_ns) {
  while (true) {
    ESPALIER_TRY_TO(const auto link, find(interface));
    if (auto address = usable_address(interface.name)) return *std::move(address);
    if (monotonic_ns() >= until_ns) {
      const std::string who = "interface " + one_line(interface.name);
      if (!link.has_carrier) {
        return fail(who + " has no carrier; expected a cable to a host whose interface is up");
      }
      return fail(who + " has no link-local IPv6 address that can be used; expected fe80::...");
    }
    const timespec pause = {0, kPauseNs};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

Result<std::vector<std::string>> lane_addresses(const std::vector<Link>& links,
                                                std::uint64_t patience_ns) {
  const std::uint64_t until_ns = monotonic_ns() + patience_ns;
  std::vector<std::string> addresses;
  for (const Link& link : links) {
    for (const Link::Interface& interface : link.interfaces) {
      auto address = address_of(interface, until_ns);
      if (!address) {
        return fail("the cable to node " + std::to_string(link.peer) + ": " +
                    address.error().message);
      }
      addresses.push_back(*std::move(address));
    }
  }
  return addresses;
}

}  // namespace espalier::node

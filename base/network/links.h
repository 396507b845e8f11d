#pragma once
// The interfaces of this host that are up, with or without a carrier and addresses: what a search
// for cables begins with. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "base/network/filter.h"
#include "base/network/interfaces.h"

namespace espalier::network {

// The link-local IPv6 address of an interface. Linux gives it within 1 s after the carrier, and for
// 1 to 2 s more no socket can use it.
enum class LinkLocal : std::uint8_t {
  kUsable,
  kNotYet,  // none is there, or it is tentative
  kFailed,  // another host has the same address
  kOff,     // the interface has no IPv6
};

struct Link {
  std::string name;
  std::uint32_t index = 0;  // number of the interface, from 1
  InterfaceKind kind = InterfaceKind::kNetwork;
  bool has_carrier = false;
  std::uint32_t rate_mbits = 0;  // Mbit/s, as its driver says; 0: unknown
  std::uint32_t mtu = 0;         // bytes; 0: unknown
  LinkLocal link_local = LinkLocal::kNotYet;
  Address address = {};  // the usable link-local one, with its scope
};

// Returns this host's interfaces that are up, except the loopback, in the system's order. Empty: it
// has none, or the system does not say.
[[nodiscard]] std::vector<Link> links_up();
// Returns those that the filter takes. Error: as InterfaceFilter::apply().
[[nodiscard]] Result<std::vector<Link>> links_up(const InterfaceFilter& filter);

}  // namespace espalier::network

#pragma once
// The interfaces of this host that carry packets, the addresses by which other hosts may reach it,
// and which host it is. Host only.

#include <ifaddrs.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/network/address.h"

namespace espalier::network {

enum class InterfaceKind : std::uint8_t {
  kNetwork,       // all others
  kBridge,        // Linux's bridge: of virtual machines and containers, or over a card
  kPointToPoint,  // one peer, or a tunnel
  kLoopback,
};

// An address of an interface. All addresses of the same `bits` first bits are on its link.
struct InterfaceAddress {
  Address address;  // port 0; a link-local one has its scope
  std::uint8_t bits = 0;
  // Whether `other`, a numeric address of this family, is on this link.
  [[nodiscard]] bool has_on_link(const Address& other) const;
};

struct Interface {
  std::string name;
  std::uint32_t index = 0;  // number of the interface, from 1
  InterfaceKind kind = InterfaceKind::kNetwork;
  std::uint32_t rate_mbits = 0;  // Mbit/s, as its driver says; 0: unknown
  std::vector<InterfaceAddress> addresses = {};
};

// Whether it has a carrier now.
[[nodiscard]] bool has_carrier(const ifaddrs& one);

// Returns this host's interfaces that are up, have a carrier and an address, in the system's order.
// Empty: it has none, or the system does not say.
[[nodiscard]] std::vector<Interface> running_interfaces();

// How long an own address of IPv6 may be tentative: it cannot be bound until no other host has
// claimed it (RFC 4862, section 5.4).
inline constexpr std::chrono::seconds kTentativeTime{3};

// Waits until an own address can be bound, as long as it is tentative, or until this time. Returns
// whether it can.
bool await_address(const Address& own, std::chrono::steady_clock::time_point until);

// Returns the interface that has this address, or whose number is its scope; null: none.
[[nodiscard]] const Interface* interface_of(const Address& address,
                                            const std::vector<Interface>& interfaces);

// Returns the interface by which packets to `address` leave this host: its name; empty: no route.
[[nodiscard]] std::string route_to(const Address& address,
                                   const std::vector<Interface>& interfaces);

// Returns what errno says, "no route to host": to stand behind an address.
[[nodiscard]] std::string error_words(int error);

// Returns a number of the network in which this process is: processes with the same one share
// interfaces, and the loopback reaches them. 0: unknown, like no other process.
[[nodiscard]] std::uint64_t network_id();

}  // namespace espalier::network

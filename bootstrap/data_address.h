#pragma once
// The address of each process for the fabric's data: one by which all others reach it. Host only.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/network/filter.h"
#include "base/network/interfaces.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::bootstrap {

// What a process says of its addresses.
struct AddressOffer {
  std::uint64_t network = 0;  // network_id(): processes with the same one are on one host
  // The address by which it reached the server, and the server's; empty: unknown.
  std::string own = {}, server = {};
  std::uint16_t probe_port = 0;  // at which it listens while the addresses are chosen
  std::uint64_t token = 0;       // of those that measure: strangers do not know it
  struct Choice {
    network::InterfaceAddress address;  // without scope
    network::InterfaceKind kind = network::InterfaceKind::kNetwork;
    std::uint32_t rate_mbits = 0;  // 0: unknown
    std::uint32_t interface = 0;   // its number on its host
  };
  std::vector<Choice> choices = {};
};
[[nodiscard]] std::string encode(const AddressOffer& offer);
// Nothing: malformed.
[[nodiscard]] std::optional<AddressOffer> decode_offer(const std::string& text);

// A subnet in which every host has an address of its own.
struct SharedSubnet {
  network::Address prefix;
  unsigned bits = 0;
  std::vector<network::Address> addresses = {};  // of each rank
  std::vector<std::uint32_t> interfaces = {};    // of each rank: its number there
  // How it compares, the lower the better.
  bool is_point_to_point = false, is_unproven = false;
  std::uint32_t slowest_mbits = 0;  // of its hosts' interfaces
  bool is_rate_known = true;        // of all of them; otherwise slowest_mbits is an assumption
  bool has_bridge = false;
  std::uint32_t measured_kbits = 0;        // kbit/s, of the slowest host; 0: unknown
  [[nodiscard]] std::string text() const;  // "10.0.0.0/24"
};
// Returns the subnets that all hosts share, the best first: those whose addresses can be proven,
// without links to one peer, the fastest. A subnet in which two hosts have the same address, such
// as that of containers' bridges, is not shared. Each rank computes the same.
[[nodiscard]] std::vector<SharedSubnet> shared_subnets(const std::vector<AddressOffer>& offers);

// Returns the numbers of those that have to be measured, at most four: the first, and proven ones
// that are not slower as their drivers say, over other interfaces. Empty: there is no choice.
[[nodiscard]] std::vector<std::size_t> subnets_to_measure(const std::vector<SharedSubnet>& subnets);

// Returns the address of each rank: the loopback's on one host; in `subnet` if it is not null;
// otherwise that by which it reached the server, or was reached as the server's host.
[[nodiscard]] std::vector<network::Address> choose_addresses(
    const std::vector<AddressOffer>& offers, const SharedSubnet* subnet);

// Agrees with all processes on the address of each, and returns this one's: "10.0.0.7",
// "fe80::7%eth0". Subnets are proven by short connections where there is a choice, and measured if
// the drivers' rates do not decide. With ESPALIER_VERBOSE the first process prints the choice.
// Every process must call it. `ranks`: their numbers in the job, ascending. `given`: an address
// that the user chose; empty: none. `is_host_given`: processes share memory as the user says, also
// those that no address reaches.
// Errors: as the functions of `members`; another process said something malformed; a rank whose
// only address is the loopback's, while others are on other hosts.
[[nodiscard]] Result<std::string> agree_on_address(
    Bootstrap& members, const std::vector<std::uint32_t>& ranks, const std::string& given,
    const network::InterfaceFilter& filter, const network::PortRange& ports, bool is_host_given);

}  // namespace espalier::bootstrap

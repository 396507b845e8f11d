#pragma once
// The addresses that the lanes of a node bind: those of the interfaces at the ends of its cables.
// Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "firmware/node/boot_options.h"

namespace espalier::node {

// How long an interface that was just set up may take until its address can be used: until the
// kernel has seen the carrier (0.9 s), and found no other host with the address (2 s).
inline constexpr std::uint64_t kAddressPatienceNs = 5'000'000'000;

// Returns for each lane, ordered by link, the link-local IPv6 address of its interface, with its
// scope: "fe80::7%eth0". Empty: the links name no interfaces. Waits for an address at most
// `patience_ns`. Errors, with the interface: it does not exist, is down, has another MTU, or after
// that time no carrier or no such address.
[[nodiscard]] Result<std::vector<std::string>> lane_addresses(
    const std::vector<Link>& links, std::uint64_t patience_ns = kAddressPatienceNs);

}  // namespace espalier::node

#pragma once
// The neighbours at a host's cables, also those on which nothing of Espalier runs: Linux answers an
// echo request to the group of all nodes of a link. Host only.

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "tools/launch/frames.h"

namespace espalier::launch {

// A link-local address at an interface of the host that speaks of it.
struct Neighbour {
  std::string interface = {};  // "eth0"
  std::string address = {};    // "fe80::7", without a scope

  auto operator<=>(const Neighbour&) const = default;
};

struct Surroundings {
  std::vector<Neighbour> own = {};    // the host's addresses
  std::vector<Neighbour> found = {};  // sorted; several at one interface: there is a switch
};

// Asks at all interfaces that are up, have a carrier and are named, and waits for the answers:
// 0.2 s at an interface with a neighbour, 1 s at one without, up to 4 s more for its own address.
// `interfaces`: as ESPALIER_INTERFACE. Errors: it names nothing here; no echo request can be sent.
[[nodiscard]] Result<Surroundings> look_around(const std::string& interfaces);

// Returns the neighbours that the output of iputils' `ping -n` names.
[[nodiscard]] std::vector<Neighbour> read_ping(const std::string& output);

// The message `neighbours`.
[[nodiscard]] Fields to_fields(const Surroundings& surroundings);
// Returns nothing if the message is malformed.
[[nodiscard]] std::optional<Surroundings> read_surroundings(const Fields& message);

}  // namespace espalier::launch

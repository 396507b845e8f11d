#pragma once
// This host's interfaces: which addresses a job publishes, in which order, and why not the others.
// Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "tools/doctor/host.h"

namespace espalier::tools::doctor {

struct JudgedAddress {
  std::string text;         // "10.0.0.1", "fe80::1%eth0"
  unsigned bits = 0;        // of the network's prefix
  std::uint32_t place = 0;  // from 1, in the order in which peers try them; 0: not published
};

struct JudgedInterface {
  std::string name = {};
  std::string state = {};        // "up", "no carrier" or "down"
  std::string kind = {};         // "network", "bridge", "point-to-point" or "loopback"
  std::uint32_t rate_mbits = 0;  // Mbit/s; 0: unknown
  std::vector<JudgedAddress> addresses = {};
  std::string verdict = {};               // what a job makes of it
  std::string problem = {}, remedy = {};  // as HostFact's
};

struct Network {
  std::vector<JudgedInterface> interfaces;  // those with an address, in the system's order
  std::vector<std::string> published;       // addresses, in the order in which peers try them
};

// Errors: ESPALIER_INTERFACE is malformed, or names nothing here; the system's reason.
[[nodiscard]] Result<Network> judge_network();

// One row per interface, and rows on the published addresses and this host's own name.
[[nodiscard]] std::vector<HostFact> network_facts(const Network& network);

}  // namespace espalier::tools::doctor

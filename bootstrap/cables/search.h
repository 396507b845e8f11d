#pragma once
// Searches for the cables of this host and of the hosts that run the search, too: over UDP and
// link-local IPv6 addresses, on every interface that is up. Host only.

#include <chrono>
#include <cstdint>
#include <string>

#include "bootstrap/cables/graph.h"
#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::cables {

inline constexpr std::uint16_t kSearchPort = 29'752;  // of UDP, unless the options say otherwise
inline constexpr std::chrono::seconds kSearchTime{30};

struct SearchOptions {
  bootstrap::JobSecret secret = {};
  std::string interfaces = {};  // as bootstrap::Options::interfaces
  std::uint16_t port = kSearchPort;
  // Ends as soon as so many hosts are found and all of them see the same; 0: as soon as two or more
  // hosts are found and nothing has changed for 2 s.
  std::uint32_t hosts = 0;
  std::chrono::milliseconds wait = kSearchTime;  // the search ends then in any case
};

struct SearchResult {
  Graph graph = {};
  bool is_settled = false;    // false: the time was over before the search was
  std::uint64_t refused = 0;  // packets that were not of this job, or repeated
};

// Errors: a wrong interface; the port is in use; sockets cannot be opened.
[[nodiscard]] Result<SearchResult> search(const SearchOptions& options);

}  // namespace espalier::cables

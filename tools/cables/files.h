#pragma once
// Graphs of cables that other programs, or people, wrote. What is in them is taken as it is. Host
// only.

#include <string>
#include <utility>
#include <vector>

#include "bootstrap/cables/graph.h"
#include "espalier/base/result.h"

namespace espalier::cables {

// A text with the place that it is from, for messages.
struct Source {
  std::string name = {};
  std::string text = {};
};

// Lines HOST INTERFACE HOST INTERFACE [MBITS]: a cable each, with its rate in Mbit/s if it is
// known. '#' begins a comment. Errors: a malformed line, no cable.
[[nodiscard]] Result<Graph> read_lines(const Source& source);

// What 'lldpcli -f json show neighbors' printed on some hosts, each with its host's name. A cable
// that one end lists is there: a daemon that started later may not know of it yet. A neighbour with
// the name of a given host but for the domain is this host.
// Errors: not of this form, no cable.
[[nodiscard]] Result<Graph> read_lldp(const std::vector<std::pair<std::string, Source>>& hosts);

// MLX's host file for RDMA: rdma[i] of a host names its devices on the cables to host i.
// Errors: not of this form; the ends name different numbers of cables; no cable.
[[nodiscard]] Result<Graph> read_mlx(const Source& source);

}  // namespace espalier::cables

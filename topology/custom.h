#pragma once
// Topologies defined by the user, from text: proto/topology.proto, docs/topologies.md.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses the text after "custom:", a topology file's text in one line. On error returns null and
// sets `error` to one line.
[[nodiscard]] std::unique_ptr<Topology> parse_custom(std::string_view text, std::string& error);

// Reads the topology file at `path`. On error returns null and sets `error` to one line,
// "PATH:LINE: ...".
[[nodiscard]] std::unique_ptr<Topology> read_topology_file(const std::string& path,
                                                           std::string& error);

}  // namespace espalier::topology

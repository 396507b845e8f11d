#pragma once
// Topologies of one's own, from text: proto/topology.proto, docs/topologies.md.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses what follows "custom:", a topology file's text in one line. Null and one line in `error`
// if it is wrong.
[[nodiscard]] std::unique_ptr<Topology> parse_custom(std::string_view text, std::string& error);

// Reads the topology file at `path`. Null and one line in `error`, "PATH:LINE: ...", if it is
// wrong.
[[nodiscard]] std::unique_ptr<Topology> read_topology_file(const std::string& path,
                                                           std::string& error);

}  // namespace espalier::topology

#pragma once
// Topologies defined by the user, from text: proto/topology.proto, docs/topologies.md.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses the text after "custom:", a topology file's text in one line.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_custom(std::string_view text);

// Reads the topology file at `path`. An error in its text is "PATH:LINE: ...".
[[nodiscard]] Result<std::unique_ptr<Topology>> read_topology_file(const std::string& path);

}  // namespace espalier::topology

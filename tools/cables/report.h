#pragma once
// What `espalier cables` prints and writes of a graph. Host only.

#include <string>

#include "bootstrap/cables/graph.h"
#include "tools/common/json.h"

namespace espalier::cables {

// A row per cable, then what was found.
[[nodiscard]] std::string text_of(const Graph& graph);
[[nodiscard]] tools::Json json_of(const Graph& graph);
// A topology file: a rank per host, in the graph's order, with its name; a link per two hosts with
// cables. A link's lanes are in proportion to the rates of its cables, if all are known; otherwise
// each cable is a lane.
[[nodiscard]] std::string topology_of(const Graph& graph);

}  // namespace espalier::cables

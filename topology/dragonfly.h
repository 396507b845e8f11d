#pragma once
// dragonfly:GxAxP: G groups of A routers of P ranks, with one global link between every two groups.
// Source: Kim, Dally, Scott and Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA
// 2008.

#include <memory>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses the text after "dragonfly:".
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_dragonfly(std::string_view text);

}  // namespace espalier::topology

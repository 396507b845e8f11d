#pragma once
// mesh:RxC: R rows of C ranks, links between neighbours, XY routes.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses the text after "mesh:".
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_mesh(std::string_view text);

}  // namespace espalier::topology

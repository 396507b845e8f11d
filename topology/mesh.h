#pragma once
// mesh:RxC: R rows of C ranks, links between neighbours, XY routes.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses what follows "mesh:". Null and one line in `error` if it is wrong.
[[nodiscard]] std::unique_ptr<Topology> parse_mesh(std::string_view text, std::string& error);

}  // namespace espalier::topology

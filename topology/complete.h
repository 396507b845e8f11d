#pragma once
// complete:N: every rank has a link to every other.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses the text after "complete:".
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_complete(std::string_view text);

}  // namespace espalier::topology

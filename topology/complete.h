#pragma once
// complete:N: every rank has a link to every other.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses what follows "complete:". Null and one line in `error` if it is wrong.
[[nodiscard]] std::unique_ptr<Topology> parse_complete(std::string_view text, std::string& error);

}  // namespace espalier::topology

#pragma once
// complete:N: every rank has a link to every other.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses the text after "complete:". On error returns null and sets `error` to one line.
[[nodiscard]] std::unique_ptr<Topology> parse_complete(std::string_view text, std::string& error);

}  // namespace espalier::topology

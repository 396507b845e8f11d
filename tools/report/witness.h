#pragma once
// The witnesses of lower bounds as commands print them: with the links and pairs of ranks that they
// count, so that a reader needs only the topology to check them. Host only.

#include <string>
#include <vector>

#include "espalier/collectives/verify/verify.h"
#include "tools/common/json.h"

namespace espalier::tools {

// Everything that the bounds rest on, and each bound with its witness. `limited`: why greater
// bounds may exist, or empty.
[[nodiscard]] Json certificate_json(const topology::Topology& topology, const Program& program,
                                    const verify::BoundFacts& facts,
                                    const std::vector<verify::LowerBound>& bounds,
                                    const std::string& limited);

// "from nodes 0, 1 by the links 0 -> 2, 1 -> 3": the cut of the bound, in short; empty if the
// bound's reason names it already.
[[nodiscard]] std::string cut_text(const topology::Topology& topology,
                                   const verify::LowerBound& bound);

}  // namespace espalier::tools

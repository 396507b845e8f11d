#pragma once
// crossbar:AxB: a hierarchical crossbar, A modules of B ranks. In a module every rank has a link to
// every other; to ranks of other modules all of a module share its few channels. Paper 000, section
// 4 ("Hierarchies of Crossbars").

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses what follows "crossbar:". AxB: two channels into and two out of each module, enough for
// both of 000's embeddings; AxB,in=I,out=O: so many. Null and one line in `error` if it is wrong.
//
// Routers only pass on: one port a module (its links to the switch are the module's channels), and
// the switch, which joins any channel out with any channel in. Rank m*B + i is in module m.
[[nodiscard]] std::unique_ptr<Topology> parse_crossbar(std::string_view text, std::string& error);

}  // namespace espalier::topology

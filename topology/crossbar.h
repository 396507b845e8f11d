#pragma once
// crossbar:AxB: a hierarchical crossbar of A modules with B ranks each. Within a module every rank
// has a link to every other. All ranks of a module share its few channels to other modules.
// [Sanders03], section 4 ("Hierarchies of Crossbars").

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses the text after "crossbar:". AxB: two channels into and two out of each module, enough for
// both embeddings of [Sanders03]; AxB,in=I,out=O: I channels in and O out.
//
// Routers only forward. They are one port per module, whose links to the switch are the module's
// channels, and the switch, which connects any outgoing channel with any incoming one. Rank m*B + i
// is in module m.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_crossbar(std::string_view text);

}  // namespace espalier::topology

#pragma once
// Algorithms that have no closed form: their schedules are searched on the host, for one topology
// and group, all nodes' programs at once. Programs are of the same kind as the rank-local
// generators' (include/espalier/collectives/algorithms/algorithms.h) and named the same way. Host
// only.

#include <span>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::searched {

// Writes the programs of all nodes (ranks, and routers where they run programs), node i's at
// position i, and returns an empty string; or returns one line that says why it cannot and what
// would be right, with `programs` empty. `group.ranks` must be the topology's, its root a rank.
// The same arguments give the same programs.
using Search = std::string (*)(const topology::Topology& topology, const Group& group,
                               Programs& programs);

struct SearchedAlgorithm {
  const char* name;  // "double-fibonacci"
  Collective collective;
  Search search;
  bool needs_commutative;
  const char* summary;     // one line with the step count
  const char* topologies;  // for whom it is: "any topology", "crossbar:AxB"
  bool (*applies)(const topology::Topology& topology);  // whether this is one of them
  std::uint32_t max_run = 0;                            // of Group::run; 0: there are no runs
};

// The table of all of them.
[[nodiscard]] std::span<const SearchedAlgorithm> searched_algorithms();
// Null if there is none.
[[nodiscard]] const SearchedAlgorithm* find_searched(Collective collective,
                                                     const std::string& name);

}  // namespace espalier::searched

#pragma once
// Algorithms without a closed form: a search on the host finds their schedules for one topology and
// group, with all nodes' programs at once. The programs are of the same kind as those of the
// rank-local generators (include/espalier/collectives/algorithms/algorithms.h) and named the same way. Host only.

#include <span>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::searched {

// Writes the programs of all nodes (ranks, and routers if they run programs) and returns an empty
// string; programs[i] is node i's. On error returns one line (the reason, and what would be right)
// and leaves `programs` empty. `group.ranks` must be the topology's, and the root must be a rank.
// The same arguments give the same programs.
using Search = std::string (*)(const topology::Topology& topology, const Group& group,
                               Programs& programs);

// A searched algorithm, with the limits and parameters that a caller must know to choose it.
struct SearchedAlgorithm {
  const char* name;  // "double-fibonacci"
  Collective collective;
  Search search;
  bool needs_commutative;
  const char* summary;     // one line with the step count
  const char* topologies;  // supported topologies: "any topology", "crossbar:AxB"
  bool (*applies)(const topology::Topology& topology);  // whether the topology is supported
  std::uint32_t max_run_length = 0;  // maximum of Group::run_length; 0: it has no run length
};

// Returns the table of all searched algorithms.
[[nodiscard]] std::span<const SearchedAlgorithm> searched_algorithms();
// Returns null if there is none.
[[nodiscard]] const SearchedAlgorithm* find_searched(Collective collective,
                                                     const std::string& name);

}  // namespace espalier::searched

#pragma once
// Algorithms without a closed form: a search on the host finds their schedules for one topology and
// root, with all nodes' programs at once. Rank-local generators (algorithms.h) make programs of
// the same kind, and algorithms are named the same way. Host only.

#include <span>
#include <string>

#include "espalier/base/result.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::searched {

// Returns the programs of all nodes (ranks, and routers if they run programs), by node. Errors:
// `parameters.ranks` differs from the topology, the root is not a rank, or the search does not
// support this topology or run length. The same arguments give the same programs.
using Search = Result<Programs>(Collective collective, const topology::Topology& topology,
                                const CollectiveParameters& parameters);

// A searched algorithm, with the limits and parameters that a caller must know to choose it.
struct SearchedAlgorithm {
  const char* name = nullptr;  // "double-fibonacci"
  Collective collective = {};
  Search* searcher = nullptr;
  bool needs_commutative = false;
  const char* summary = nullptr;            // one line with the step count
  const char* topologies = "any topology";  // supported topologies: "crossbar:AxB[xC..]"
  // Whether the topology is supported.
  bool (*applies)(const topology::Topology&) = [](const topology::Topology&) { return true; };
  std::uint32_t max_run_length = 0;  // maximum of `run_length`; 0: it has no run length
  bool any_topology = false;  // it routes nothing: its ranks may have any place on any topology
  bool has_groups = false;    // an embedding places its ranks by groups (Embedding::groups)
  bool has_routers = false;   // routers have programs too
  // Its nodes use all of the topology's own links in a step, also where the topology stands for a
  // fabric that routes: `auto` takes it for hop-by-hop schedules only.
  bool own_links = false;
  // Returns why the search cannot run in this build or on this host, and what to do; null if it
  // can. A null pointer: it runs everywhere.
  const char* (*missing)() = nullptr;

  // Returns the programs of all nodes (Search).
  [[nodiscard]] Result<Programs> search(const topology::Topology& topology,
                                        const CollectiveParameters& parameters) const {
    return searcher(collective, topology, parameters);
  }
};

// Returns the table of all searched algorithms.
[[nodiscard]] std::span<const SearchedAlgorithm> searched_algorithms();
// Returns null if there is none.
[[nodiscard]] const SearchedAlgorithm* find_searched(Collective collective,
                                                     const std::string& name);

}  // namespace espalier::searched

#pragma once
// The algorithms of collectives/algorithms, rank-local and searched, in one table. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/search.h"

namespace espalier::planner {

// One algorithm: rank-local, or searched on this host.
struct AlgorithmEntry {
  std::string name;
  Collective collective = Collective::kNone;
  bool needs_commutative = false;
  std::string summary;
  std::string topologies;  // the topologies it is for: "any topology"
  bool any_topology = false;
  bool is_chain = false;                                // as Algorithm::is_chain
  bool has_groups = false;                              // as SearchedAlgorithm::has_groups
  std::vector<std::string> parameters;                  // "--run-length", "--radix", ...
  std::uint32_t max_run_length = 0;                     // of --run-length; 0 where it takes none
  const Algorithm* generator = nullptr;                 // null: searched
  const searched::SearchedAlgorithm* search = nullptr;  // null: rank-local
};
// All of them, by collective.
[[nodiscard]] const std::vector<AlgorithmEntry>& algorithm_entries();
// The algorithm of this name that does the collective. Error: there is none.
[[nodiscard]] Result<const AlgorithmEntry*> find_entry(Collective collective,
                                                       const std::string& name);
// Whether the algorithm has this parameter: "--run-length".
[[nodiscard]] bool takes(const AlgorithmEntry& entry, const std::string& parameter);

}  // namespace espalier::planner

#pragma once
// The programs of all nodes, for tests. Host only.

#include <stdexcept>
#include <string>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier {

// Writes the programs of all nodes. Returns the status of the first node that has none.
[[nodiscard]] inline Status generate_all(const Algorithm& algorithm,
                                         const CollectiveParameters& parameters,
                                         Programs& programs) {
  programs = Programs(algorithm_nodes(algorithm, parameters));
  Status status = Status::kOk;
  for (std::uint32_t node = 0; node < programs.size() && status == Status::kOk; ++node) {
    status = algorithm.generate(parameters, node, programs[node]);
  }
  return status;
}

// Returns the programs of all nodes; throws if a node has none.
inline Programs must_generate(Collective collective, const std::string& name,
                              const CollectiveParameters& parameters) {
  const Algorithm* algorithm = find_algorithm(collective, name.c_str());
  if (algorithm == nullptr) throw std::runtime_error("no algorithm " + name);
  Programs programs;
  const Status status = generate_all(*algorithm, parameters, programs);
  if (status != Status::kOk) throw std::runtime_error(name + ": " + status_name(status));
  return programs;
}

}  // namespace espalier

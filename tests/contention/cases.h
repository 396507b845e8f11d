#pragma once
// Random cases (topology, placement of the ranks, algorithm, root, N). The simulator and the
// verifier must agree on whether a case needs more lanes than its links have.

#include <cstdint>
#include <memory>
#include <string>

#include "collectives/simulation/testing/job_cluster.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::contention {

struct ContentionCase {
  std::string name;    // everything that distinguishes the case
  std::string family;  // "mesh", "fat tree", ...
  std::string placement;
  std::string links = "routed";                  // or "lowered", "lowered, a hop moved"
  std::unique_ptr<topology::Topology> topology;  // its rank r is where rank r was placed
  Programs programs;
  std::uint32_t root = 0;
  std::int64_t blocks = 1;    // maximum of N
  std::uint64_t missing = 0;  // elements by which the message is shorter
};

// The same seed gives the same case. `examples`: the folder of topology files.
[[nodiscard]] ContentionCase random_case(std::uint64_t seed, const std::string& examples);

// The network of the case's real links, and its collective with N = blocks.
[[nodiscard]] sim::Model model_of(const ContentionCase& contention_case);
[[nodiscard]] testing::Job job_of(const ContentionCase& contention_case, std::int64_t blocks);

}  // namespace espalier::contention

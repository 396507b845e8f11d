#pragma once
// Test helper: replays a schedule whose routers have programs, step by step for one N, over the
// links of its fat tree. Checks neighbours, lanes, ports, matching, exact `after`, slot reuse
// within the window, the content of every operand, results and claims. Host only; independent of
// the verifier.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::leaf_replay {

struct Tree {
  std::uint32_t arity, height;
  std::vector<std::uint32_t> capacities;  // of levels 1 ..; empty: one lane everywhere
};
[[nodiscard]] std::string spec(const Tree& tree);
// The group of the tree's leaves; `tree` must outlive it.
[[nodiscard]] Group group_of(const Tree& tree, std::uint32_t root);

// All nodes' programs. `error` is empty if all could be made and check_program accepts them.
struct Schedule {
  Programs programs;
  std::string error;
};
[[nodiscard]] Schedule generate(const Algorithm& algorithm, const Group& group);

struct Result {
  std::string error;       // empty if every check passed, otherwise the error and where
  std::int64_t steps = 0;  // 1 + the last step with an event
  std::int64_t held = 0;   // maximum steps from a router's receipt of a message to sending it
};
[[nodiscard]] Result run(const Schedule& schedule, const topology::Topology& topology,
                         std::int64_t blocks);

}  // namespace espalier::leaf_replay

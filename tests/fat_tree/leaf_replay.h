#pragma once
// Test helper: replays a schedule whose routers have programs, step by step for one N, over the
// links of its fat tree. Checks neighbours, lanes, ports, matching, exact `after`, slot reuse
// within the window, the content of every operand, results and claims. Host only; independent of
// the verifier.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::leaf_replay {

struct Tree {
  std::uint32_t arity, height;
  std::vector<std::uint32_t> capacities;    // of levels 1 ..; empty: one lane everywhere
  std::vector<std::uint32_t> arities = {};  // of levels 1 ..; empty: `arity` at every level
};
// Returns the children of a router of `level`.
[[nodiscard]] std::uint32_t arity(const Tree& tree, std::uint32_t level);
// Returns the leaves below a node of `level`.
[[nodiscard]] std::int64_t leaves(const Tree& tree, std::uint32_t level);
[[nodiscard]] std::string spec(const Tree& tree);
// The parameters for the tree's leaves; `tree` must outlive it.
[[nodiscard]] CollectiveParameters parameters_of(const Tree& tree, std::uint32_t root);

// Returns all nodes' programs. Fails if one cannot be generated or check_program rejects it.
[[nodiscard]] Result<Programs> generate(const Algorithm& algorithm,
                                        const CollectiveParameters& parameters);

struct Outcome {
  std::int64_t steps = 0;  // 1 + the last step with an event
  std::int64_t held = 0;   // maximum steps from a router's receipt of a message to sending it
};
// Replays a schedule with N = blocks. Fails with the first check that does not hold, and where.
[[nodiscard]] Result<Outcome> run(const Programs& programs, const topology::Topology& topology,
                                  std::int64_t blocks);

}  // namespace espalier::leaf_replay

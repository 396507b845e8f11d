#pragma once
// Property form: every program is one that a node would load, and all programs agree on everything
// that must be the same on all nodes. For every N at once. Internal to collectives/verify.

#include <cstdint>

#include "collectives/verify/report/counterexample.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// Checks the program of `node` against rank 0's program, `common`.
[[nodiscard]] Finding check_agreement(const topology::Topology& topology, const Program& common,
                                      std::uint32_t node, const Program& program);

}  // namespace espalier::verify

#pragma once
// The algorithms that serve whatever a model says. Host only.

#include "espalier/collectives/schedule/program.h"

namespace espalier::communicator {

// Algorithms that serve every number of ranks: with an operator that commutes, with one that does
// not, whatever the root is, and with a count for each rank.
struct FixedAlgorithms {
  Collective::Value collective;
  const char* commutes;
  const char* in_order;
  const char* unequal;
};
// Returns the algorithms for ranks of which any two can talk; with `is_graph`, for ranks on any
// connected graph of links, onto which most algorithms are lowered.
[[nodiscard]] const FixedAlgorithms& fixed_algorithms(Collective collective, bool is_graph);

}  // namespace espalier::communicator

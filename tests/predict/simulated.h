#pragma once
// The time of a schedule on simulated machines without data, free running: the measure of
// predictions and choices.

#include <cstdint>

#include "collectives/predict/model.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/base/switching.h"
#include "espalier/topology/topology.h"

namespace espalier::testing {

// A line alpha + beta * bytes for every link.
struct LineCost {
  double alpha = 20e-6;  // s
  double beta = 1e-9;    // s/B
};

// Returns the virtual time, in ps. `count`, `op`: of Machine::start(). Throws std::runtime_error if
// a machine cannot start or fails. In the postal model the network has the latency that the
// schedule claims, as in `espalier simulate`.
[[nodiscard]] predict::Picoseconds simulated(const topology::Topology& topology,
                                             const Programs& programs, const Operator& op,
                                             std::uint64_t count, const LineCost& cost,
                                             Switching switching);

}  // namespace espalier::testing

#pragma once
// Tells algorithms the numbers of a topology. Host only.

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/topology/topology.h"

namespace espalier {

// Sets the numbers of the topology's family, and clears those of the others. `parameters` points
// into `shape`, which must outlive it.
inline void set_shape(const topology::Shape& shape, CollectiveParameters& parameters) {
  parameters.arity = shape.arity;
  parameters.height = shape.height;
  parameters.arities = shape.arities.empty() ? nullptr : shape.arities.data();
  parameters.capacities = shape.capacities.empty() ? nullptr : shape.capacities.data();
  parameters.rows = shape.rows;
  parameters.columns = shape.columns;
  parameters.grid = shape.grid.empty() ? nullptr : shape.grid.data();
  parameters.dimensions = static_cast<std::uint32_t>(shape.grid.size());
  parameters.wraps = shape.wraps;
  parameters.hosts = shape.hosts;
  parameters.host_ranks = shape.host_ranks;
}
inline void set_shape(topology::Shape&& shape, CollectiveParameters& parameters) = delete;

}  // namespace espalier

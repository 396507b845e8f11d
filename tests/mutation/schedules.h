#pragma once
// Every schedule that the library makes for a topology, for tests.

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::mutation {

struct Made {
  std::string name;  // "two-tree reduce, mesh:1x7, root 1"
  std::string algorithm;
  Collective collective = Collective::kNone;
  Programs programs;  // of all nodes that have one
};

// The parameters for all ranks of the topology, with the topology's shape, capacities and digest.
[[nodiscard]] CollectiveParameters parameters_of(const topology::Topology& topology,
                                                 std::uint32_t root, std::uint32_t window);
// All nodes' programs; empty if the algorithm does not support them.
[[nodiscard]] Programs programs_of(const Algorithm& algorithm,
                                   const CollectiveParameters& parameters);

// Calls `use` for each schedule: by all algorithms and searched ones that support this topology,
// for each root of `roots` if they have one, with a few values of the parameters.
void for_schedules(const topology::Topology& topology, const std::set<std::uint32_t>& roots,
                   std::uint32_t window, const std::function<void(Made)>& use);
// Each of these schedules that does not run hop by hop, lowered onto the topology's links.
void for_lowered_schedules(const topology::Topology& topology, const std::set<std::uint32_t>& roots,
                           std::uint32_t window, const std::function<void(Made)>& use);

}  // namespace espalier::mutation

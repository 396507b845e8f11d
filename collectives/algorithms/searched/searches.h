#pragma once
// The searches, one file per algorithm. The steps, cost and source of an algorithm are at the top
// of its file. Arguments and results: Search in searched.h.

#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::searched {

// double_fibonacci.cc
[[nodiscard]] std::string double_fibonacci_broadcast(const topology::Topology& topology,
                                                     const Group& group, Programs& programs);
[[nodiscard]] std::string double_fibonacci_reduce(const topology::Topology& topology,
                                                  const Group& group, Programs& programs);
// crossbar_trees.cc: hierarchical crossbars only. Group::run_length as in fractional trees.
[[nodiscard]] std::string crossbar_a_broadcast(const topology::Topology& topology,
                                               const Group& group, Programs& programs);
[[nodiscard]] std::string crossbar_b_broadcast(const topology::Topology& topology,
                                               const Group& group, Programs& programs);
// fractional_mesh.cc: meshes with a known embedding (include/espalier/topology/embedding.h).
[[nodiscard]] std::string fractional_mesh_broadcast(const topology::Topology& topology,
                                                    const Group& group, Programs& programs);
// fractional_direct.cc
[[nodiscard]] std::string fractional_direct_broadcast(const topology::Topology& topology,
                                                      const Group& group, Programs& programs);
// leaf_exchange.cc: only fat trees whose routers run programs.
[[nodiscard]] std::string leaf_overlapped_all_to_all(const topology::Topology& topology,
                                                     const Group& group, Programs& programs);
[[nodiscard]] std::string leaf_single_all_to_all(const topology::Topology& topology,
                                                 const Group& group, Programs& programs);

}  // namespace espalier::searched

#pragma once
// The searches, one file per algorithm. The steps, cost and source of an algorithm are at the top
// of its file. Arguments and results: Search in search.h.

#include <cstdint>

#include "espalier/base/result.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::searched {

// double_fibonacci.cc
[[nodiscard]] Result<Programs> double_fibonacci_broadcast(const topology::Topology& topology,
                                                          const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> double_fibonacci_reduce(const topology::Topology& topology,
                                                       const CollectiveParameters& parameters);
// crossbar_trees.cc: hierarchical crossbars only. `run_length` as in fractional trees.
[[nodiscard]] Result<Programs> crossbar_a_broadcast(const topology::Topology& topology,
                                                    const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> crossbar_a_reduce(const topology::Topology& topology,
                                                 const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> crossbar_b_broadcast(const topology::Topology& topology,
                                                    const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> crossbar_b_reduce(const topology::Topology& topology,
                                                 const CollectiveParameters& parameters);
// fractional_mesh.cc: meshes with a known embedding (include/espalier/topology/topology.h).
[[nodiscard]] Result<Programs> fractional_mesh_broadcast(const topology::Topology& topology,
                                                         const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> fractional_mesh_reduce(const topology::Topology& topology,
                                                      const CollectiveParameters& parameters);
// mesh_all_to_all.cc: meshes of at most kMaxLinearRanks ranks (builder.h).
[[nodiscard]] Result<Programs> mesh_balanced_all_to_all(const topology::Topology& topology,
                                                        const CollectiveParameters& parameters);
// all_port.cc: tori, rings and hypercubes of at most 256 ranks.
[[nodiscard]] Result<Programs> all_port_allgather(const topology::Topology& topology,
                                                  const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> all_port_reduce_scatter(const topology::Topology& topology,
                                                       const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> all_port_allreduce(const topology::Topology& topology,
                                                  const CollectiveParameters& parameters);
// fractional_direct.cc
[[nodiscard]] Result<Programs> fractional_direct_broadcast(const topology::Topology& topology,
                                                           const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> fractional_direct_reduce(const topology::Topology& topology,
                                                        const CollectiveParameters& parameters);
// leaf_overlapped.cc: only fat trees whose routers run programs.
[[nodiscard]] Result<Programs> leaf_overlapped_all_to_all(const topology::Topology& topology,
                                                          const CollectiveParameters& parameters);
// leaf_single.cc, leaf_multinode.cc: as leaf_overlapped.cc.
[[nodiscard]] Result<Programs> leaf_single_all_to_all(const topology::Topology& topology,
                                                      const CollectiveParameters& parameters);
// leaf_flood.cc: as leaf_overlapped.cc.
[[nodiscard]] Result<Programs> leaf_flood_allgather(const topology::Topology& topology,
                                                    const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> leaf_single_allgather(const topology::Topology& topology,
                                                     const CollectiveParameters& parameters);
// in_network.cc: topologies whose routers run programs.
[[nodiscard]] Result<Programs> in_network_broadcast(const topology::Topology& topology,
                                                    const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> in_network_reduce(const topology::Topology& topology,
                                                 const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> in_network_allreduce(const topology::Topology& topology,
                                                    const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> in_network_scan(const topology::Topology& topology,
                                               const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> in_network_exscan(const topology::Topology& topology,
                                                 const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> in_network_barrier(const topology::Topology& topology,
                                                  const CollectiveParameters& parameters);
// packed_trees.cc: any topology of at most kMaxPackedNodes nodes, or kMaxPackedRoots if every rank
// is a root, with at most kMaxPackedLinks links per node (more have no room in programs).
inline constexpr std::uint32_t kMaxPackedNodes = 256, kMaxPackedRoots = 64;
inline constexpr std::uint32_t kMaxPackedLinks = 16;
[[nodiscard]] bool can_pack_one_root(const topology::Topology& topology);
[[nodiscard]] bool can_pack_all_roots(const topology::Topology& topology);
[[nodiscard]] Result<Programs> packed_trees_broadcast(const topology::Topology& topology,
                                                      const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> packed_trees_reduce(const topology::Topology& topology,
                                                   const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> packed_trees_allreduce(const topology::Topology& topology,
                                                      const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> packed_trees_allgather(const topology::Topology& topology,
                                                      const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> packed_trees_reduce_scatter(const topology::Topology& topology,
                                                           const CollectiveParameters& parameters);
// packed_paths.cc: topologies for which can_pack_all_roots(). Error without Clp.
[[nodiscard]] Result<Programs> packed_paths_all_to_all(const topology::Topology& topology,
                                                       const CollectiveParameters& parameters);
// in_network.cc: topologies for which can_pack_one_root(), with or without routers.
[[nodiscard]] Result<Programs> breadth_first_broadcast(const topology::Topology& topology,
                                                       const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> breadth_first_reduce(const topology::Topology& topology,
                                                    const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> breadth_first_allreduce(const topology::Topology& topology,
                                                       const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> breadth_first_barrier(const topology::Topology& topology,
                                                     const CollectiveParameters& parameters);
// time_expanded.cc: topologies for which can_pack_all_roots().
[[nodiscard]] Result<Programs> time_expanded_allgather(const topology::Topology& topology,
                                                       const CollectiveParameters& parameters);
[[nodiscard]] Result<Programs> time_expanded_reduce_scatter(const topology::Topology& topology,
                                                            const CollectiveParameters& parameters);

}  // namespace espalier::searched

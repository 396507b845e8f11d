#pragma once
// The generators, one file per algorithm. Each function is a Generator (algorithms.h): it writes
// the program of node `me`. The steps, cost and source of an algorithm are at the top of its file.
// All are freestanding and take O(log p) time. They serve any number of ranks up to kMaxRanks,
// unless the file gives another limit. kBadArgument and kTooLarge: see Builder::begin().
//
// Buffers: see buffer_extent (program.h). A broadcast's root sends from INPUT; the others receive
// into OUTPUT and forward from there. The root is used if has_root(). INPUT and OUTPUT may be the
// same memory if both hold the whole message, except in exscan/two-tree, exscan/two-tree-mirror,
// exscan/two-tree-simplex, exscan/doubly-pipelined, exscan/hosts-chain, all-to-all/pairwise and
// all-to-all/hosts-pairwise.

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier {

// binomial.cc: one block down a binomial tree.
[[nodiscard]] Status binomial_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                        Program& out);
// knomial.cc: one block along a tree over intervals of ranks. knomial_broadcast() and
// knomial_reduce() have radix `radix`, in the postal model; binomial_reduce() has radix 2. The
// operator of a reduce need not commute. kTooLarge if a program has no room for a rank's transfers.
// kBadArgument unless 1 <= S <= L <= kMaxTicks.
[[nodiscard]] Status knomial_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                       Program& out);
[[nodiscard]] Status knomial_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                    Program& out);
[[nodiscard]] Status binomial_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);
// scatter_allgather.cc: a binomial scatter of p segments, then a ring.
[[nodiscard]] Status scatter_allgather_broadcast(const CollectiveParameters& parameters,
                                                 std::uint32_t me, Program& out);
// chain.cc: one pipeline through all ranks. chain_broadcast() begins at the root and chain_reduce()
// ends there; chain_allreduce() is a reduce and then a broadcast.
[[nodiscard]] Status chain_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);
[[nodiscard]] Status chain_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                  Program& out);
[[nodiscard]] Status chain_allreduce(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);
// chain_scan.cc: chain_scan() and chain_exscan() along all ranks, in their order. chain_ends.cc:
// chain_ends_reduce() along two chains, which meet at the root; the operator need not commute.
[[nodiscard]] Status chain_scan(const CollectiveParameters& parameters, std::uint32_t me,
                                Program& out);
[[nodiscard]] Status chain_exscan(const CollectiveParameters& parameters, std::uint32_t me,
                                  Program& out);
[[nodiscard]] Status chain_ends_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                       Program& out);
// binary.cc: binary_broadcast() and binary_reduce() along one pipelined binary tree.
[[nodiscard]] Status binary_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                      Program& out);
[[nodiscard]] Status binary_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                   Program& out);
// two_tree.cc: two pipelined trees, each of which carries half of the message.
// two_tree_broadcast(), two_tree_reduce(), and two_tree_allreduce(), which is a reduce and then a
// broadcast.
[[nodiscard]] Status two_tree_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                        Program& out);
[[nodiscard]] Status two_tree_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);
[[nodiscard]] Status two_tree_allreduce(const CollectiveParameters& parameters, std::uint32_t me,
                                        Program& out);
// The second tree is the mirror image of the first: two_tree_mirror_broadcast() and
// two_tree_mirror_reduce(). kUnsupported if the ranks other than the root are odd in number (p
// even).
[[nodiscard]] Status two_tree_mirror_broadcast(const CollectiveParameters& parameters,
                                               std::uint32_t me, Program& out);
[[nodiscard]] Status two_tree_mirror_reduce(const CollectiveParameters& parameters,
                                            std::uint32_t me, Program& out);
// two_tree_scan.cc: two_tree_scan() and two_tree_exscan(), first up and then down two trees; and
// the same with mirrored trees, two_tree_mirror_scan() and two_tree_mirror_exscan().
// two_tree_simplex.cc: two_tree_simplex_broadcast(), two_tree_simplex_reduce() and
// two_tree_simplex_allreduce(), for ports that send or receive in a step, but not both.
// two_tree_simplex_scan.cc: two_tree_simplex_scan() and two_tree_simplex_exscan(), the same.
[[nodiscard]] Status two_tree_scan(const CollectiveParameters& parameters, std::uint32_t me,
                                   Program& out);
[[nodiscard]] Status two_tree_exscan(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);
[[nodiscard]] Status two_tree_mirror_scan(const CollectiveParameters& parameters, std::uint32_t me,
                                          Program& out);
[[nodiscard]] Status two_tree_mirror_exscan(const CollectiveParameters& parameters,
                                            std::uint32_t me, Program& out);
[[nodiscard]] Status two_tree_simplex_broadcast(const CollectiveParameters& parameters,
                                                std::uint32_t me, Program& out);
[[nodiscard]] Status two_tree_simplex_reduce(const CollectiveParameters& parameters,
                                             std::uint32_t me, Program& out);
[[nodiscard]] Status two_tree_simplex_allreduce(const CollectiveParameters& parameters,
                                                std::uint32_t me, Program& out);
[[nodiscard]] Status two_tree_simplex_scan(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);
[[nodiscard]] Status two_tree_simplex_exscan(const CollectiveParameters& parameters,
                                             std::uint32_t me, Program& out);
// One block in the postal model: lambda_tree_broadcast() (lambda_tree.cc) and combine_allreduce()
// (combine.cc). alpha_tree.cc: alpha_tree_broadcast(), whose senders keep a fixed share of their
// ranks, and alpha_table_broadcast(), whose share depends on their number. kBadArgument unless the
// ticks satisfy 1 <= S <= L <= kMaxTicks, and a given ratio 0 < ratio < 1.
[[nodiscard]] Status lambda_tree_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);
[[nodiscard]] Status alpha_tree_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                          Program& out);
[[nodiscard]] Status alpha_table_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);
[[nodiscard]] Status combine_allreduce(const CollectiveParameters& parameters, std::uint32_t me,
                                       Program& out);
// knomial_scatter.cc: messages hold the parts of an interval of ranks; binomial_scatter() and
// binomial_gather() have radix 2, knomial_scatter() and knomial_gather() radix `radix`, in the
// postal model. linear.cc: linear_scatter() and linear_gather(), with a link between the root and
// every other rank; kTooLarge above kMaxLinearRanks ranks (builder.h). chain_scatter.cc:
// chain_scatter() and chain_gather(), along all ranks from the root onward.
[[nodiscard]] Status binomial_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                      Program& out);
[[nodiscard]] Status binomial_gather(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);
[[nodiscard]] Status knomial_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);
[[nodiscard]] Status knomial_gather(const CollectiveParameters& parameters, std::uint32_t me,
                                    Program& out);
[[nodiscard]] Status linear_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                    Program& out);
[[nodiscard]] Status linear_gather(const CollectiveParameters& parameters, std::uint32_t me,
                                   Program& out);
[[nodiscard]] Status chain_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                   Program& out);
[[nodiscard]] Status chain_gather(const CollectiveParameters& parameters, std::uint32_t me,
                                  Program& out);
// ring.cc: ring_allgather(), ring_reduce_scatter() and ring_allreduce(), in which every rank sends
// only to the next one. pairwise.cc: pairwise_all_to_all(), an exchange with every other rank in
// turn. bruck.cc: bruck_all_to_all(), in which parts for several ranks travel together; kTooLarge
// above 26 ranks. dissemination.cc: dissemination_barrier(), which notifies a rank twice as far
// away in each step.
[[nodiscard]] Status ring_allgather(const CollectiveParameters& parameters, std::uint32_t me,
                                    Program& out);
[[nodiscard]] Status ring_reduce_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                         Program& out);
[[nodiscard]] Status ring_allreduce(const CollectiveParameters& parameters, std::uint32_t me,
                                    Program& out);
[[nodiscard]] Status pairwise_all_to_all(const CollectiveParameters& parameters, std::uint32_t me,
                                         Program& out);
[[nodiscard]] Status bruck_all_to_all(const CollectiveParameters& parameters, std::uint32_t me,
                                      Program& out);
[[nodiscard]] Status dissemination_barrier(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);
// circulant.cc: circulant_broadcast() and circulant_reduce() in the fewest steps possible.
// kTooLarge beyond 2^20 and 2^12 ranks.
[[nodiscard]] Status circulant_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                         Program& out);
[[nodiscard]] Status circulant_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                      Program& out);
// allgather_reduce_scatter/circulant.cc: circulant_allgather(), circulant_reduce_scatter(),
// circulant_allreduce() and bruck_allgather() in the fewest messages, with the fewest bytes, for
// any number of ranks. kTooLarge beyond 2^15 ranks, circulant_reduce_scatter() beyond 2^12,
// circulant_allreduce() beyond 2^11.
[[nodiscard]] Status circulant_allgather(const CollectiveParameters& parameters, std::uint32_t me,
                                         Program& out);
[[nodiscard]] Status bruck_allgather(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);
[[nodiscard]] Status circulant_reduce_scatter(const CollectiveParameters& parameters,
                                              std::uint32_t me, Program& out);
[[nodiscard]] Status circulant_allreduce(const CollectiveParameters& parameters, std::uint32_t me,
                                         Program& out);
// For short messages. recursive_doubling.cc: recursive_doubling_allreduce(),
// recursive_doubling_barrier(), and recursive_doubling_allgather(), kTooLarge above 65536 ranks.
// doubling_scan.cc:
// recursive_doubling_scan(), recursive_doubling_exscan(), and doubling_123_exscan() with the
// distances 1, 2, 3, 6, 12, ...
[[nodiscard]] Status recursive_doubling_allreduce(const CollectiveParameters& parameters,
                                                  std::uint32_t me, Program& out);
[[nodiscard]] Status recursive_doubling_barrier(const CollectiveParameters& parameters,
                                                std::uint32_t me, Program& out);
[[nodiscard]] Status recursive_doubling_allgather(const CollectiveParameters& parameters,
                                                  std::uint32_t me, Program& out);
[[nodiscard]] Status recursive_doubling_scan(const CollectiveParameters& parameters,
                                             std::uint32_t me, Program& out);
[[nodiscard]] Status recursive_doubling_exscan(const CollectiveParameters& parameters,
                                               std::uint32_t me, Program& out);
[[nodiscard]] Status doubling_123_exscan(const CollectiveParameters& parameters, std::uint32_t me,
                                         Program& out);
// halving.cc: recursive halving, for long messages in logarithmically many steps; kTooLarge above
// 4095 ranks. recursive_halving_reduce_scatter(); rabenseifner_allreduce(), which goes back by
// recursive doubling; and rabenseifner_reduce(), which gathers at the root.
[[nodiscard]] Status rabenseifner_allreduce(const CollectiveParameters& parameters,
                                            std::uint32_t me, Program& out);
[[nodiscard]] Status rabenseifner_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                         Program& out);
[[nodiscard]] Status recursive_halving_reduce_scatter(const CollectiveParameters& parameters,
                                                      std::uint32_t me, Program& out);
// doubly_pipelined_scan.cc: doubly_pipelined_scan() and doubly_pipelined_exscan(), up and down one
// binary tree at the same time. dual_root.cc: dual_root_allreduce(), the same with two trees.
[[nodiscard]] Status doubly_pipelined_scan(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);
[[nodiscard]] Status doubly_pipelined_exscan(const CollectiveParameters& parameters,
                                             std::uint32_t me, Program& out);
[[nodiscard]] Status dual_root_allreduce(const CollectiveParameters& parameters, std::uint32_t me,
                                         Program& out);
// A pipelined fractional tree. fractional.cc: fractional_broadcast() and fractional_reduce().
// fractional_simplex.cc: fractional_simplex_broadcast() and fractional_simplex_reduce(), with one
// send or receive per step. kTooLarge if the run length is above kMaxRunLength,
// kMaxReduceRunLength, kMaxSimplexRunLength or kMaxSimplexReduceRunLength respectively
// (fractional_tree.h).
[[nodiscard]] Status fractional_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                          Program& out);
[[nodiscard]] Status fractional_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                       Program& out);
[[nodiscard]] Status fractional_simplex_broadcast(const CollectiveParameters& parameters,
                                                  std::uint32_t me, Program& out);
[[nodiscard]] Status fractional_simplex_reduce(const CollectiveParameters& parameters,
                                               std::uint32_t me, Program& out);
// Fat trees, ranks and routers (leaf_tree.h): kUnsupported if the ranks are not those of a fat
// tree. leaf_broadcast.cc: in leaf_broadcast() every node sends to one neighbour per step, in
// leaf_multiport_broadcast() to all neighbours at once.
[[nodiscard]] Status leaf_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                    Program& out);
[[nodiscard]] Status leaf_multiport_broadcast(const CollectiveParameters& parameters,
                                              std::uint32_t me, Program& out);
// leaf_scatter.cc: leaf_scatter() from the root to all other ranks, furthest first, and
// leaf_gather() to the root, nearest first.
[[nodiscard]] Status leaf_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                  Program& out);
[[nodiscard]] Status leaf_gather(const CollectiveParameters& parameters, std::uint32_t me,
                                 Program& out);
// leaf_allgather.cc
[[nodiscard]] Status leaf_allgather(const CollectiveParameters& parameters, std::uint32_t me,
                                    Program& out);
// leaf_all_to_all.cc: any capacities. In leaf_all_to_all() the messages of one level follow those
// of the level above without a gap, in leaf_serial_all_to_all() once these have arrived.
[[nodiscard]] Status leaf_all_to_all(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);
[[nodiscard]] Status leaf_serial_all_to_all(const CollectiveParameters& parameters,
                                            std::uint32_t me, Program& out);

// Clusters of hosts: phases inside each host and phases across the hosts. kUnsupported if the ranks
// are not hosts * host_ranks.
// hosts_trees.cc: one leader of each host sends to other hosts. hosts_binomial_broadcast() has one
// block; hosts_chain_broadcast() and hosts_two_tree_broadcast() are pipelined. So are the
// allreduces: hosts_binomial_allreduce(), hosts_chain_allreduce(), hosts_two_tree_allreduce().
[[nodiscard]] Status hosts_binomial_broadcast(const CollectiveParameters& parameters,
                                              std::uint32_t me, Program& out);
[[nodiscard]] Status hosts_chain_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);
[[nodiscard]] Status hosts_two_tree_broadcast(const CollectiveParameters& parameters,
                                              std::uint32_t me, Program& out);
[[nodiscard]] Status hosts_binomial_allreduce(const CollectiveParameters& parameters,
                                              std::uint32_t me, Program& out);
[[nodiscard]] Status hosts_chain_allreduce(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);
[[nodiscard]] Status hosts_two_tree_allreduce(const CollectiveParameters& parameters,
                                              std::uint32_t me, Program& out);
// hosts_scan.cc: hosts_chain_scan() and hosts_chain_exscan() along the ranks of each host, along
// the hosts, along the ranks again.
[[nodiscard]] Status hosts_chain_scan(const CollectiveParameters& parameters, std::uint32_t me,
                                      Program& out);
[[nodiscard]] Status hosts_chain_exscan(const CollectiveParameters& parameters, std::uint32_t me,
                                        Program& out);
// hosts_rings.cc: every rank exchanges with the ranks that have its number on other hosts.
// hosts_ring_allgather(), hosts_ring_reduce_scatter(), which has one block, and
// hosts_multi_leader_allreduce(), which has a segment for each number.
[[nodiscard]] Status hosts_ring_allgather(const CollectiveParameters& parameters, std::uint32_t me,
                                          Program& out);
[[nodiscard]] Status hosts_ring_reduce_scatter(const CollectiveParameters& parameters,
                                               std::uint32_t me, Program& out);
[[nodiscard]] Status hosts_multi_leader_allreduce(const CollectiveParameters& parameters,
                                                  std::uint32_t me, Program& out);
// hosts_all_to_all.cc: an exchange with every other rank in turn. kTooLarge if
// host_ranks^2 * (hosts - 1) is above 2^20.
[[nodiscard]] Status hosts_pairwise_all_to_all(const CollectiveParameters& parameters,
                                               std::uint32_t me, Program& out);
// hosts_reduce_barrier.cc: hosts_binomial_reduce() of one block, and hosts_dissemination_barrier().
[[nodiscard]] Status hosts_binomial_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);
[[nodiscard]] Status hosts_dissemination_barrier(const CollectiveParameters& parameters,
                                                 std::uint32_t me, Program& out);
// hosts_scatter.cc: hosts_binomial_scatter() and hosts_binomial_gather(), whose messages hold the
// parts of several hosts or ranks. kTooLarge above 65535 ranks.
[[nodiscard]] Status hosts_binomial_scatter(const CollectiveParameters& parameters,
                                            std::uint32_t me, Program& out);
[[nodiscard]] Status hosts_binomial_gather(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);

// Meshes with XY routing. kUnsupported if the ranks are not rows * columns.
// hosts_scatter.cc: mesh_binomial_scatter(), as hosts_binomial_scatter() with rows as hosts.
[[nodiscard]] Status mesh_binomial_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);

// Meshes, tori and rings with dimension-order routing. kUnsupported if the ranks are not the
// product of the dimensions, or these are more than 3; kTooLarge above 65535 ranks in all
// dimensions but the first.
// bucket.cc: bucket_allgather(), bucket_reduce_scatter() and bucket_allreduce() by rings along each
// dimension, one block per rank; only on tori and rings, by rings in both directions:
// bidirectional_bucket_allgather(), bidirectional_bucket_reduce_scatter() and
// bidirectional_bucket_allreduce().
[[nodiscard]] Status bucket_allgather(const CollectiveParameters& parameters, std::uint32_t me,
                                      Program& out);
[[nodiscard]] Status bucket_reduce_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);
[[nodiscard]] Status bucket_allreduce(const CollectiveParameters& parameters, std::uint32_t me,
                                      Program& out);
[[nodiscard]] Status bidirectional_bucket_allgather(const CollectiveParameters& parameters,
                                                    std::uint32_t me, Program& out);
[[nodiscard]] Status bidirectional_bucket_reduce_scatter(const CollectiveParameters& parameters,
                                                         std::uint32_t me, Program& out);
[[nodiscard]] Status bidirectional_bucket_allreduce(const CollectiveParameters& parameters,
                                                    std::uint32_t me, Program& out);

}  // namespace espalier

#pragma once
// The generators, one file per algorithm. Each function is a Generator (algorithms.h): it writes
// the program of node `me`. The steps, cost and source of an algorithm are at the top of its file.
// All are freestanding and take O(log p) time. They serve any number of ranks up to kMaxRanks,
// unless the file gives another limit. kBadArgument and kTooLarge: see Builder::begin().
//
// Buffers: see buffer_extent (program.h). A broadcast's root sends from INPUT; the others receive
// into OUTPUT and forward from there. The root is used if has_root(). INPUT and OUTPUT may be the
// same memory if both hold the whole message, except in exscan/two-tree and all-to-all/pairwise.

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier {

// binomial.cc: one block down a binomial tree.
[[nodiscard]] Status binomial_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                        Program& out);
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
// binary.cc: one pipelined binary tree.
[[nodiscard]] Status binary_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
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
// A two-tree broadcast whose second tree is the mirror image of the first. kUnsupported if the
// ranks other than the root are odd in number (p even).
[[nodiscard]] Status two_tree_mirror_broadcast(const CollectiveParameters& parameters,
                                               std::uint32_t me, Program& out);
// two_tree_scan.cc: two_tree_scan() and two_tree_exscan(), first up and then down two trees.
// two_tree_simplex.cc: two_tree_simplex_broadcast(), for ports that send or receive in a step, but
// not both.
[[nodiscard]] Status two_tree_scan(const CollectiveParameters& parameters, std::uint32_t me,
                                   Program& out);
[[nodiscard]] Status two_tree_exscan(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);
[[nodiscard]] Status two_tree_simplex_broadcast(const CollectiveParameters& parameters,
                                                std::uint32_t me, Program& out);
// One block in the postal model: lambda_tree_broadcast() (lambda_tree.cc) and combine_allreduce()
// (combine.cc). kBadArgument unless the ticks satisfy 1 <= S <= L <= kMaxTicks.
[[nodiscard]] Status lambda_tree_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);
[[nodiscard]] Status combine_allreduce(const CollectiveParameters& parameters, std::uint32_t me,
                                       Program& out);
// binomial_scatter.cc: binomial_scatter() and binomial_gather(), whose messages hold the parts of
// an interval of ranks. ring.cc: ring_allgather() and ring_reduce_scatter(), in which every rank
// sends only to the next one. pairwise.cc: pairwise_all_to_all(), an exchange with every other rank
// in turn. dissemination.cc: dissemination_barrier(), which notifies a rank twice as far away in
// each step.
[[nodiscard]] Status binomial_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                      Program& out);
[[nodiscard]] Status binomial_gather(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);
[[nodiscard]] Status ring_allgather(const CollectiveParameters& parameters, std::uint32_t me,
                                    Program& out);
[[nodiscard]] Status ring_reduce_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                                         Program& out);
[[nodiscard]] Status pairwise_all_to_all(const CollectiveParameters& parameters, std::uint32_t me,
                                         Program& out);
[[nodiscard]] Status dissemination_barrier(const CollectiveParameters& parameters, std::uint32_t me,
                                           Program& out);
// circulant.cc: circulant_broadcast() and circulant_reduce() in the fewest steps possible.
// kTooLarge beyond 2^20 and 2^12 ranks.
[[nodiscard]] Status circulant_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                         Program& out);
[[nodiscard]] Status circulant_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                      Program& out);
// A pipelined fractional tree. fractional.cc: fractional_broadcast() and fractional_reduce().
// fractional_simplex.cc: fractional_simplex_broadcast(), with one send or receive per step.
// kTooLarge if the run length is above kMaxRunLength, kMaxReduceRunLength or
// kMaxSimplexRunLength respectively (fractional_tree.h).
[[nodiscard]] Status fractional_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                          Program& out);
[[nodiscard]] Status fractional_reduce(const CollectiveParameters& parameters, std::uint32_t me,
                                       Program& out);
[[nodiscard]] Status fractional_simplex_broadcast(const CollectiveParameters& parameters,
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
// leaf_all_to_all.cc: any capacities
[[nodiscard]] Status leaf_all_to_all(const CollectiveParameters& parameters, std::uint32_t me,
                                     Program& out);

}  // namespace espalier

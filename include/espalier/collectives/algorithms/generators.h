#pragma once
// The generators, one file per algorithm. The steps, cost and source of an algorithm are at the top
// of its file. All are freestanding and take O(log p) time. They serve any number of ranks up to
// kMaxRanks, unless the file gives another limit. kBadArgument and kTooLarge: see Builder::begin().
//
// Buffers: see buffer_extent (program.h). A broadcast's root sends from INPUT; the others receive
// into OUTPUT and forward from there. Group.root is used if has_root(). INPUT and OUTPUT may be the
// same memory if both hold the whole message, except in exscan/two-tree and all-to-all/pairwise.

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier {

// binomial.cc
[[nodiscard]] Status binomial_broadcast(const Group& group, std::uint32_t me, Program& out);
// chain.cc
[[nodiscard]] Status chain_broadcast(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status chain_reduce(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status chain_allreduce(const Group& group, std::uint32_t me, Program& out);
// chain_scan.cc, chain_ends.cc
[[nodiscard]] Status chain_scan(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status chain_exscan(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status chain_ends_reduce(const Group& group, std::uint32_t me, Program& out);
// binary.cc
[[nodiscard]] Status binary_broadcast(const Group& group, std::uint32_t me, Program& out);
// two_tree.cc
[[nodiscard]] Status two_tree_broadcast(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status two_tree_reduce(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status two_tree_allreduce(const Group& group, std::uint32_t me, Program& out);
// kUnsupported if the ranks other than the root are odd in number (p even).
[[nodiscard]] Status two_tree_mirror_broadcast(const Group& group, std::uint32_t me, Program& out);
// two_tree_scan.cc, two_tree_simplex.cc
[[nodiscard]] Status two_tree_scan(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status two_tree_exscan(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status two_tree_simplex_broadcast(const Group& group, std::uint32_t me, Program& out);
// lambda_tree.cc, combine.cc: kBadArgument unless the group's ticks satisfy
// 1 <= S <= L <= kMaxTicks.
[[nodiscard]] Status lambda_tree_broadcast(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status combine_allreduce(const Group& group, std::uint32_t me, Program& out);
// binomial_scatter.cc, ring.cc, pairwise.cc, dissemination.cc
[[nodiscard]] Status binomial_scatter(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status binomial_gather(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status ring_allgather(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status ring_reduce_scatter(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status pairwise_all_to_all(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status dissemination_barrier(const Group& group, std::uint32_t me, Program& out);
// fractional.cc, and fractional_simplex.cc with one send or receive per step: kTooLarge if the
// group's run is above kMaxRun, kMaxReduceRun or kMaxSimplexRun respectively (fractional_tree.h).
[[nodiscard]] Status fractional_broadcast(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status fractional_reduce(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status fractional_simplex_broadcast(const Group& group, std::uint32_t me,
                                                  Program& out);
// Fat trees, ranks and routers (leaf_tree.h): kUnsupported if the group is not a fat tree.
// leaf_broadcast.cc
[[nodiscard]] Status leaf_broadcast(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status leaf_multiport_broadcast(const Group& group, std::uint32_t me, Program& out);
// leaf_scatter.cc
[[nodiscard]] Status leaf_scatter(const Group& group, std::uint32_t me, Program& out);
[[nodiscard]] Status leaf_gather(const Group& group, std::uint32_t me, Program& out);
// leaf_allgather.cc
[[nodiscard]] Status leaf_allgather(const Group& group, std::uint32_t me, Program& out);
// leaf_all_to_all.cc: any capacities
[[nodiscard]] Status leaf_all_to_all(const Group& group, std::uint32_t me, Program& out);

}  // namespace espalier

#pragma once
// The generators, at least one file per algorithm; algorithms.cc names the collectives of each. The
// steps, cost and source of an algorithm are at the top of its file. All are freestanding and take
// O(log p) time. They serve any number of ranks up to kMaxRanks, unless the file gives another
// limit. kBadArgument and kTooLarge: see Builder::begin().
//
// Buffers: see buffer_extent (program.h). A broadcast's root sends from INPUT; the others receive
// into OUTPUT and forward from there. The root is used if has_root(). INPUT and OUTPUT may be the
// same memory if both hold the whole message, except in exscan/two-tree, exscan/two-tree-mirror,
// exscan/two-tree-simplex, exscan/doubly-pipelined, exscan/hosts-chain, all-to-all/pairwise and
// all-to-all/hosts-pairwise.

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier {

// binomial.cc: one block down a binomial tree.
Generator binomial_broadcast;
// knomial.cc: one block along a tree over intervals of ranks, of radix `radix`, in the postal
// model; binomial_reduce() has radix 2. The operator of a reduce need not commute. kTooLarge if a
// program has no room for a rank's transfers. kBadArgument unless 1 <= S <= L <= kMaxTicks.
Generator generate_knomial, binomial_reduce;
// scatter_allgather.cc: a binomial scatter of p segments, then a ring.
Generator scatter_allgather_broadcast;
// chain.cc: one pipeline through all ranks. A broadcast begins at the root and a reduce ends there;
// an allreduce is a reduce and then a broadcast.
Generator generate_chain;
// chain_scan.cc: along all ranks, in their order. chain_ends.cc: along two chains, which meet at
// the root; the operator need not commute.
Generator generate_chain_scan, chain_ends_reduce;
// binary.cc: along one pipelined binary tree.
Generator binary_broadcast, binary_reduce;
// two_tree.cc: two pipelined trees, each of which carries half of the message. An allreduce is a
// reduce and then a broadcast. In generate_two_tree_mirror() the second tree is the mirror image of
// the first: kUnsupported if the ranks other than the root are odd in number (p even).
Generator generate_two_tree, generate_two_tree_mirror;
// two_tree_scan.cc: first up and then down two trees.
Generator generate_two_tree_scan, generate_two_tree_mirror_scan;
// two_tree_simplex.cc, two_tree_simplex_scan.cc: for ports that send or receive in a step, but not
// both.
Generator generate_two_tree_simplex, generate_two_tree_simplex_scan;
// One block in the postal model. lambda_tree.cc, combine.cc; alpha_tree.cc: alpha_tree_broadcast(),
// whose senders keep a fixed share of their ranks, and alpha_table_broadcast(), whose share depends
// on their number. kBadArgument unless the ticks satisfy 1 <= S <= L <= kMaxTicks, and a given
// ratio 0 < ratio < 1.
Generator lambda_tree_broadcast, combine_allreduce, alpha_tree_broadcast, alpha_table_broadcast;
// knomial_scatter.cc: messages hold the parts of an interval of ranks, along a tree of radix 2, or
// `radix` in the postal model.
Generator generate_binomial_scatter, generate_knomial_scatter;
// linear.cc: a link between the root and every other rank; kTooLarge above kMaxLinearRanks ranks
// (builder.h).
Generator generate_linear;
// chain_scatter.cc: along all ranks from the root onward.
Generator generate_chain_scatter;
// ring.cc: every rank sends only to the next one. pairwise.cc: an exchange with every other rank in
// turn. bruck.cc: parts for several ranks travel together; kTooLarge above 26 ranks.
// dissemination.cc: notifies a rank twice as far away in each step.
Generator generate_ring, pairwise_all_to_all, bruck_all_to_all, dissemination_barrier;
// broadcast_reduce/circulant.cc: in the fewest steps possible. kTooLarge beyond 2^20 and 2^12
// ranks.
Generator generate_circulant_tree;
// allgather_reduce_scatter/circulant.cc: in the fewest messages, with the fewest bytes, for any
// number of ranks. kTooLarge beyond 2^15 ranks, in a reduce-scatter beyond 2^12, in an allreduce
// beyond 2^11.
Generator generate_circulant, bruck_allgather;
// For short messages. recursive_doubling.cc: an allgather is kTooLarge above 65536 ranks.
// doubling_scan.cc: doubling_123_exscan() has the distances 1, 2, 3, 6, 12, ...
Generator generate_recursive_doubling, generate_recursive_doubling_scan, doubling_123_exscan;
// halving.cc: recursive halving, for long messages in logarithmically many steps; kTooLarge above
// 4095 ranks. An allreduce goes back by recursive doubling, a reduce gathers at the root.
Generator generate_halving;
// doubly_pipelined_scan.cc: up and down one binary tree at the same time. dual_root.cc: the same
// with two trees.
Generator generate_doubly_pipelined_scan, dual_root_allreduce;
// fractional.cc: a pipelined fractional tree. fractional_simplex.cc: with one send or receive per
// step. kTooLarge if the run length is above kMaxRunLength, kMaxReduceRunLength,
// kMaxSimplexRunLength or kMaxSimplexReduceRunLength respectively (fractional_tree.h).
Generator generate_fractional, generate_fractional_simplex;

// Fat trees, ranks and routers (leaf_tree.h): kUnsupported if the ranks are not those of a fat
// tree. leaf_broadcast.cc: in leaf_broadcast() every node sends to one neighbour per step, in
// leaf_multiport_broadcast() to all neighbours at once.
Generator leaf_broadcast, leaf_multiport_broadcast;
// leaf_scatter.cc: a scatter from the root to all other ranks, furthest first, and a gather to the
// root, nearest first. leaf_allgather.cc
Generator generate_leaf_scatter, leaf_allgather;
// leaf_all_to_all.cc: any capacities. In leaf_all_to_all() the messages of one level follow those
// of the level above without a gap, in leaf_serial_all_to_all() once these have arrived.
Generator leaf_all_to_all, leaf_serial_all_to_all;

// Clusters of hosts: phases inside each host and phases across the hosts. kUnsupported if the ranks
// are not hosts * host_ranks.
// hosts_trees.cc: one leader of each host sends to other hosts. Pipelined, except for a broadcast
// by generate_hosts_binomial(), which has one block.
Generator generate_hosts_binomial, generate_hosts_chain, generate_hosts_two_tree;
// hosts_scan.cc: along the ranks of each host, along the hosts, along the ranks again.
Generator generate_hosts_chain_scan;
// hosts_rings.cc: every rank exchanges with the ranks that have its number on other hosts. A
// reduce-scatter has one block, an allreduce a segment for each number.
Generator hosts_ring_allgather, hosts_ring_reduce_scatter, hosts_multi_leader_allreduce;
// hosts_all_to_all.cc: an exchange with every other rank in turn. kTooLarge if
// host_ranks^2 * (hosts - 1) is above 2^20.
Generator hosts_pairwise_all_to_all;
// hosts_reduce_barrier.cc: one block.
Generator hosts_binomial_reduce, hosts_dissemination_barrier;
// hosts_scatter.cc: messages hold the parts of several hosts or ranks. kTooLarge above 65535 ranks.
Generator hosts_binomial_scatter, hosts_binomial_gather;

// hosts_scatter.cc: as hosts_binomial_scatter(), with the rows of a mesh as hosts. kUnsupported if
// the ranks are not rows * columns.
Generator mesh_binomial_scatter;

// Meshes, tori and rings with dimension-order routing. kUnsupported if the ranks are not the
// product of the dimensions, or these are more than 3; kTooLarge above 65535 ranks in all
// dimensions but the first.
// bucket.cc: rings along each dimension, one block per rank; only on tori and rings, rings in both
// directions.
Generator generate_bucket, generate_bidirectional_bucket;

}  // namespace espalier

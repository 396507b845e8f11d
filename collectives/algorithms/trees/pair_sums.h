#pragma once
// Sums up two trees of pairs of ranks, for simplex ports: a reduce, and the first phase of a scan.
// Freestanding.
//
// In step 2j+1 a pair does what its place in the trees does in step j of a two-tree reduce. In step
// 2j the rank that does not send to the parent passes its sum to the rank that does.

#include "collectives/algorithms/trees/pair_trees.h"
#include "collectives/build/builder.h"

namespace espalier {

// The sum that a rank keeps in OUTPUT for the second phase of a scan. A lower rank keeps the sum of
// its left subtree, an inclusive one with its own block. An upper rank keeps the lower rank's sum,
// with its own block or without; but only if it has the edge to the parent.
enum class Kept : std::uint8_t { kNothing, kInclusive, kExclusive };

// The step in which the first block crosses the edge.
[[nodiscard]] inline std::uint32_t pair_sum_step(const TwoTrees& trees,
                                                 const TwoTrees::Edge& edge) {
  return 2 * (trees.last_arrival() - edge.arrival) + 1;
}

// Adds one rank of a pair in one tree. The period is 4.
void add_pair_sum(Builder& builder, const PairTrees& pairs, const PairTrees::Place& place,
                  bool upper, unsigned tree, Kept kept);

// The steps of the phase for one block. `kept`: whether ranks keep sums of which some are not sent
// to a parent.
[[nodiscard]] std::uint32_t pair_sum_steps(const PairTrees& pairs, bool kept);

}  // namespace espalier

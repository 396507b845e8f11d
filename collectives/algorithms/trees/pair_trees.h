#pragma once
// Pairs of ranks (the paper's couples) that take the places of two trees, for simplex ports
// ([SST09] section 5.2). Freestanding.
//
// Ranks are counted from a root onward; the root itself is outside the trees. Place c = 1 .. n of
// the trees is a pair: ranks 2c-1 (lower) and 2c (upper), or 2c and 2c+1 if the first rank after
// the root has no place. While one rank of a pair sends to another pair, the other rank receives.
//
// The lower rank has the edge to the left child and the upper rank the edge to the right child:
// then sums keep the order of the ranks. A pair has children in one tree only, over edges of both
// colours. In the steps of the left child's colour the lower rank is busy. So an edge of this
// colour to a parent belongs to the upper rank, and an edge of the other colour to the lower rank.

#include <cstdint>

#include "collectives/algorithms/trees/two_trees.h"

namespace espalier {

class PairTrees {
 public:
  using Edge = TwoTrees::Edge;

  // `first`: the position of the first pair's lower rank, 1 or 2. `trees` must outlive this object.
  PairTrees(const TwoTrees& trees, std::uint32_t ranks, std::uint32_t root, std::uint32_t first = 1)
      : trees_(trees), ranks_(ranks), root_(root), first_(first) {}

  // A pair in both trees.
  struct Place {
    std::uint32_t pe;
    TwoTrees::Both edges;  // into this place
    unsigned inner;        // the tree in which the place may have children
    Edge left, right;      // to its children there; pe 0: none

    // Whether the upper rank, otherwise the lower one, has the edge to the parent.
    [[nodiscard]] bool upper_has_parent(unsigned tree) const;
  };
  [[nodiscard]] Place place(std::uint32_t pe) const;

  [[nodiscard]] const TwoTrees& trees() const { return trees_; }
  // The rank `position` ranks after the root.
  [[nodiscard]] std::uint32_t rank(std::uint32_t position) const {
    return static_cast<std::uint32_t>((std::uint64_t{root_} + position) % ranks_);
  }
  [[nodiscard]] std::uint32_t rank(std::uint32_t pe, bool upper) const {
    return rank(first_ + 2 * (pe - 1) + (upper ? 1 : 0));
  }
  // The two ends of the edge into a place: the rank of the pair there, and the rank of the parent,
  // which is the root above the trees' roots.
  [[nodiscard]] std::uint32_t child_end(unsigned tree, std::uint32_t pe) const {
    return rank(pe, place(pe).upper_has_parent(tree));
  }
  [[nodiscard]] std::uint32_t parent_end(unsigned tree, std::uint32_t pe) const {
    const std::uint32_t parent = trees_.parent(tree, pe);
    return parent == 0 ? root_ : rank(parent, pe > parent);
  }

 private:
  const TwoTrees& trees_;
  std::uint32_t ranks_, root_, first_;
};

}  // namespace espalier

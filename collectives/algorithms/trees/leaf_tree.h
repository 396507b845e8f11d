#pragma once
// What the generators for fat trees share: where a node stands. Freestanding. Levels are paper
// 002's: ranks are at level 0, the root router at level h.

#include <cstdint>

#include "collectives/algorithms/build/builder.h"

namespace espalier {

// A node of a complete k-ary tree of height h, numbered as topology/fat_tree.h does: ranks, then
// the routers level by level, each level from the left.
struct LeafNode {
  std::uint32_t arity = 0, height = 0, ranks = 0;
  std::uint32_t level = 0;
  std::uint32_t index = 0;   // in its level, from the left
  std::uint32_t first = 0;   // first node of its level
  std::uint32_t leaves = 1;  // ranks below it: k^level

  [[nodiscard]] std::uint32_t parent() const {
    return first + ranks / leaves + index / arity;  // level < height
  }
  [[nodiscard]] std::uint32_t child(std::uint32_t branch) const {
    return first - ranks / leaves * arity + index * arity + branch;  // level > 0
  }
  // Which child of its parent it is.
  [[nodiscard]] std::uint32_t branch() const { return index % arity; }
  [[nodiscard]] bool holds(std::uint32_t rank) const { return rank / leaves == index; }
  // The level of the lowest router above (or at) this node that has `rank` below it.
  [[nodiscard]] std::uint32_t meeting_level(std::uint32_t rank) const;
};

// k^level, of a level within the tree.
[[nodiscard]] std::uint32_t leaves_below(const LeafNode& node, std::uint32_t level);

// Finds node `me` of the group's fat tree. kUnsupported: the group is of no fat tree (its arity and
// height do not give its ranks); kBadArgument: no such node.
[[nodiscard]] Status find_leaf_node(const Group& group, std::uint32_t me, LeafNode& node);
// Ranks and routers.
[[nodiscard]] std::uint32_t leaf_tree_nodes(const LeafNode& node);

// Lanes of the branches between `level` - 1 and `level`, 1 <= level <= height.
[[nodiscard]] std::uint32_t branch_lanes(const Group& group, std::uint32_t level);

// For lower bounds: never above a + ceil(blocks * N / lanes), and equal to it where blocks mod
// lanes is 0, lanes - 1, or divides lanes. lanes >= 1.
[[nodiscard]] Count steps_over_lanes(std::uint32_t a, std::uint32_t blocks, std::uint32_t lanes);

// Links of a router's program: its children are 0 .. k-1, its parent (below the root) is k. A
// rank's parent is 0. Adds them all.
void add_leaf_links(Builder& builder, const LeafNode& node);

}  // namespace espalier

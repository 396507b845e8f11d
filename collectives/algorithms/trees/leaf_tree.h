#pragma once
// The position of a node in a fat tree, shared by all fat-tree generators. Freestanding. Levels are
// numbered as in [DD96]: ranks are at level 0, the root router is at level h. Routers of level l
// have k_l children ([DD96], section 4), and K_l = k_1 k_2 ... k_l ranks below them.

#include <cstdint>

#include "collectives/build/builder.h"
#include "espalier/internal/base/assert.h"

namespace espalier {

constexpr std::uint32_t kMaxLevels = 32;  // of a tree of at most 2^32 ranks

// Returns k_level, 1 <= level <= height.
[[nodiscard]] inline std::uint32_t level_arity(const CollectiveParameters& parameters,
                                               std::uint32_t level) {
  ESPALIER_ASSERT(1 <= level && level <= parameters.height);
  return parameters.arities == nullptr ? parameters.arity : parameters.arities[level - 1];
}

// A node of a complete tree of height h, numbered as in topology/families.h: first the ranks, then
// the routers level by level, each level from the left.
struct LeafNode {
  const CollectiveParameters* tree = nullptr;  // must outlive the node
  std::uint32_t height = 0, ranks = 0;
  std::uint32_t level = 0;
  std::uint32_t index = 0;   // position in its level, from the left
  std::uint32_t first = 0;   // first node of its level
  std::uint32_t leaves = 1;  // ranks below it: K_level

  // The number of children of every router of `of`: k_of, 1 <= of <= height.
  [[nodiscard]] std::uint32_t arity(std::uint32_t of) const { return level_arity(*tree, of); }
  // The number of children of this node; 0 for a rank.
  [[nodiscard]] std::uint32_t children() const { return level == 0 ? 0 : arity(level); }
  // Requires level < height.
  [[nodiscard]] std::uint32_t parent() const {
    ESPALIER_ASSERT(level < height);
    return first + ranks / leaves + index / arity(level + 1);
  }
  // Requires level > 0 and branch < children().
  [[nodiscard]] std::uint32_t child(std::uint32_t branch) const {
    ESPALIER_ASSERT(level > 0 && branch < children());
    const std::uint32_t k = children();
    return first - ranks / leaves * k + index * k + branch;
  }
  // The link of a router to its parent.
  [[nodiscard]] std::uint32_t parent_link() const { return children(); }
  // The branch of its parent that leads to this node. Requires level < height.
  [[nodiscard]] std::uint32_t branch() const { return index % arity(level + 1); }
  [[nodiscard]] bool holds(std::uint32_t rank) const { return rank / leaves == index; }
  // The level of the lowest router at or above this node that has `rank` below it.
  [[nodiscard]] std::uint32_t meeting_level(std::uint32_t rank) const;
};

// K_level, for a level within the tree.
[[nodiscard]] std::uint32_t leaves_below(const LeafNode& node, std::uint32_t level);

// Finds node `me` of the fat tree; `node` refers to `parameters`. kUnsupported: the ranks are not
// those of a fat tree (arities and height do not yield their number); kBadArgument: no such node.
[[nodiscard]] Status find_leaf_node(const CollectiveParameters& parameters, std::uint32_t me,
                                    LeafNode& node);
// Number of ranks and routers.
[[nodiscard]] std::uint32_t leaf_tree_nodes(const LeafNode& node);

// Lanes of the branches between `level` - 1 and `level`, 1 <= level <= height.
[[nodiscard]] std::uint32_t branch_lanes(const CollectiveParameters& parameters,
                                         std::uint32_t level);

// A count for lower bounds. It never exceeds a + ceil(blocks * N / lanes), and equals this value if
// blocks mod lanes is 0, is lanes - 1, or divides lanes. Requires lanes >= 1.
[[nodiscard]] Count steps_over_lanes(std::uint32_t a, std::uint32_t blocks, std::uint32_t lanes);

// Adds all links of the node. A router's children are links 0 .. k-1, its parent (below the root)
// is link k. A rank's parent is link 0.
void add_leaf_links(Builder& builder, const LeafNode& node);

}  // namespace espalier

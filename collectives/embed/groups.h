#pragma once
// A fractional tree whose groups are rectangles of a mesh ([Sanders03], section 4, "Meshes").
// Simulated annealing finds the place of each group and the way its chain winds. Host only.

#include <cstdint>
#include <vector>

#include "collectives/embed/placement.h"
#include "espalier/topology/topology.h"

namespace espalier::embed {

// The binary tree of groups, parents before children; the first has the source.
struct GroupTree {
  struct TreeGroup {
    std::uint32_t parent = 0;
    bool is_right = false;  // right successor of the parent, otherwise its down successor
  };
  std::uint32_t run_length = 1;  // r, the ranks per group
  std::vector<TreeGroup> groups;
  bool keeps_h_tree = false;  // a complete tree that must stay near an H-tree
};

// Returns the tree of `groups` groups that reaches its last rank first.
[[nodiscard]] GroupTree least_tree(std::uint32_t run_length, std::uint32_t groups);
// Returns a single group above a complete binary tree, the form of H-trees. `groups`: a power of
// two.
[[nodiscard]] GroupTree complete_tree(std::uint32_t run_length, std::uint32_t groups);

// Rectangles of rows x columns on a mesh.
struct GroupShape {
  std::uint32_t rows = 1, columns = 1;
};

struct GroupPlacement {
  GroupTree tree;       // the search may exchange down and right successors
  Placement placement;  // rank i of group g is virtual rank g*run_length + i
};

// Places the tree's groups, one per rectangle. Cut-through: a link carries at most one block in
// each of the run_length + 1 slots; store-and-forward: at most run_length + 1 blocks in total.
// `search.period` is not used. The shape must divide the mesh into as many rectangles as there are
// groups. A root that does not move must be a corner of its rectangle.
[[nodiscard]] GroupPlacement find_groups(const topology::Topology& mesh, const Routes& routes,
                                         const GroupShape& shape, const GroupTree& tree,
                                         const Search& search);

}  // namespace espalier::embed

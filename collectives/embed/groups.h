#pragma once
// A fractional tree whose groups are rectangles of a mesh (000, Sanders and Sibeyn, section 4,
// "Meshes"): which group stands where, and how its chain winds, found by simulated annealing. Host
// only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/embed/placement.h"
#include "espalier/topology/topology.h"

namespace espalier::embed {

// The binary tree of groups, parents before children; the first is the source's.
struct GroupTree {
  struct Group {
    std::uint32_t parent = 0;
    bool is_right = false;  // the parent's right successor, else the one below
  };
  std::uint32_t run = 1;  // r, ranks of a group
  std::vector<Group> groups;
  bool keeps_h_tree = false;  // a complete tree that is to stay near an H-tree
};

// The tree of so many groups whose last rank is reached first.
[[nodiscard]] GroupTree least_tree(std::uint32_t run, std::uint32_t groups);
// A single group above a complete binary tree: H-trees are of that kind. `groups`: a power of two.
[[nodiscard]] GroupTree complete_tree(std::uint32_t run, std::uint32_t groups);

// Rectangles of rows x columns on a mesh.
struct GroupShape {
  std::uint32_t rows = 1, columns = 1;
};

struct GroupPlacement {
  GroupTree tree;       // its down and right successors may be exchanged
  Placement placement;  // rank i of group g is virtual rank g*run + i
};

// Places the tree's groups, one a rectangle. Cut-through: a link
// carries at most one block in each of the run+1 slots; store-and-forward: at most run+1 blocks in
// all. `search.period` is not used. The shape must divide the mesh into as many rectangles as there
// are groups; a root that stays where it is must be a corner of its rectangle.
[[nodiscard]] GroupPlacement find_groups(const topology::Topology& mesh, const Routes& routes,
                                         const GroupShape& shape, const GroupTree& tree,
                                         const Search& search);

}  // namespace espalier::embed

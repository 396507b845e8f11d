#include "collectives/algorithms/trees/two_trees.h"

namespace espalier {
namespace {

std::uint32_t height(std::uint32_t node) { return static_cast<std::uint32_t>(__builtin_ctz(node)); }

// Requires x >= 1.
std::uint32_t top_height(std::uint32_t x) {
  return 31 - static_cast<std::uint32_t>(__builtin_clz(x));
}

// The greatest power of two <= x; requires x >= 1.
std::uint32_t top_bit(std::uint32_t x) { return 1u << top_height(x); }

std::uint32_t count_ones(std::uint32_t x) {
  return static_cast<std::uint32_t>(__builtin_popcount(x));
}

// The shape of T1 with m nodes 1 .. m ([SST09] section 3, where they are 0 .. m-1). It is in order:
// a complete left subtree of 2^h - 1 nodes, and the same construction with the remaining nodes on
// the right.
struct Above {
  std::uint32_t node;
  bool left;  // the lower node is its left child
};

Above above_node(std::uint32_t node, std::uint32_t m) {
  const std::uint32_t bit = node & -node;
  const bool right = (node & bit << 1) != 0 || node + bit > m;
  return {right ? node - bit : node + bit, !right};
}

// Returns 0 if there is none.
std::uint32_t left_node(std::uint32_t node) {
  const std::uint32_t bit = 1u << height(node);
  return bit == 1 ? 0 : node - bit / 2;
}

std::uint32_t right_node(std::uint32_t node, std::uint32_t m) {
  const std::uint32_t bit = 1u << height(node);
  if (bit == 1 || node == m) return 0;
  const std::uint32_t rest = top_bit(m - node);
  return node + (rest < bit / 2 ? rest : bit / 2);
}

// Whether node is the root of T1 with m nodes, or on the path of right children from the root.
bool on_right_spine(std::uint32_t node, std::uint32_t m) {
  return m >> height(node) == node >> height(node);
}

}  // namespace

TwoTrees::TwoTrees(std::uint32_t n, Pairing pairing, Use use)
    : n_(n), pairing_(pairing), use_(use), size_{n, pairing == Pairing::kShift ? n + 1 : n} {
  root_[0] = top_bit(size_[0]);
  root_[1] = top_bit(size_[1]);
  if (pairing == Pairing::kMirror) {
    turns_right_[0] = turns_right_[1] = n / 2 % 2 == 1;
  } else {
    turns_right_[0] = true;
    spine_differs_ = (n % 4 == 0 || n % 4 == 1) && __builtin_parity(n) == 0 && use != Use::kUp;
  }
  use == Use::kAll ? start_source() : start_subtrees();
}

void TwoTrees::start_source() {
  const std::uint32_t latest_1 = latest(0);
  const std::uint32_t latest_2 = latest(1);
  first_ = latest_1 > latest_2 ? 0 : 1;
  start_[1 - first_] = 1;
  const std::uint32_t end_1 = latest_1 + start_[0];
  const std::uint32_t end_2 = latest_2 + start_[1];
  last_arrival_ = end_1 > end_2 ? end_1 : end_2;
}

// Chooses the better of the two assignments of colours to steps.
void TwoTrees::start_subtrees() {
  std::uint32_t last[2];
  for (early_colour_ = 0; early_colour_ < 2; ++early_colour_) {
    const std::uint32_t latest_1 = latest(0);
    const std::uint32_t latest_2 = latest(1);
    last[early_colour_] = latest_1 > latest_2 ? latest_1 : latest_2;
  }
  early_colour_ = last[1] < last[0] ? 1 : 0;
  last_arrival_ = last[early_colour_];
}

std::uint32_t TwoTrees::node(unsigned tree, std::uint32_t pe) const {
  if (tree == 0) return pe;
  return pairing_ == Pairing::kShift ? pe + 1 : n_ + 1 - pe;
}

std::uint32_t TwoTrees::pe(unsigned tree, std::uint32_t node) const {
  if (tree == 0) return node;
  return pairing_ == Pairing::kShift ? node - 1 : n_ + 1 - node;
}

std::uint32_t TwoTrees::root(unsigned tree) const { return pe(tree, root_[tree]); }

bool TwoTrees::is_inner(unsigned tree, std::uint32_t pe) const { return pe % 2 == tree; }

std::uint32_t TwoTrees::parent(unsigned tree, std::uint32_t pe) const {
  const std::uint32_t index = node(tree, pe);
  return index == root_[tree] ? 0 : this->pe(tree, above_node(index, size_[tree]).node);
}

// Whether the edge from an inner node to an inner child has another colour than the edge into the
// node. Mirroring: [SST09] Fig. 3 (where "bitand i = 1" must read "is not 0"). Shifting: checked
// exhaustively for n <= 3000. The colour changes at right children in T1 and at left children in
// T2. Exception: if n = 0 or 1 (mod 4) and n has an even number of one bits, the nodes of T1's
// right spine do the opposite.
bool TwoTrees::changes_colour(unsigned tree, std::uint32_t parent, bool left) const {
  const bool differs = spine_differs_ && tree == 0 && on_right_spine(parent, n_);
  return left != (turns_right_[tree] != differs);
}

// In a mirror image the nodes' right spine is the ranks' left spine.
bool TwoTrees::unused_is_right(unsigned tree) const {
  const bool mirrored = tree == 1 && pairing_ == Pairing::kMirror;
  return goes_up() != mirrored;
}

// The left spine consists of the powers of two, up to the root.
bool TwoTrees::on_unused_spine(unsigned tree, std::uint32_t node) const {
  if (use_ == Use::kAll) return false;
  return unused_is_right(tree) ? on_right_spine(node, size_[tree]) : (node & (node - 1)) == 0;
}

// Returns the arrival at a child over an edge of this colour.
std::uint32_t TwoTrees::arrival(unsigned tree, const Edge& from, unsigned colour) const {
  if (on_unused_spine(tree, node(tree, from.pe))) return colour == early_colour_ ? 0 : 1;
  return from.arrival + (from.colour != colour ? 1 : 2);
}

// The path from a node to the right spine and along it: `low` edges up to the top of a complete
// subtree, then the edge from that top to the spine (if the top is not on it), then `spine` edges
// of the spine.
struct TwoTrees::Path {
  std::uint32_t low, low_changes, spine;
  bool on_spine;
};

// The numbers of the right spine's nodes begin like m and end, after one of its one bits, in zeros.
// So the spine's node above is determined by the first bit in which `index` differs from m. The
// turns below it are the bits of `index`: a node of height h is a right child if bit h+1 is set.
TwoTrees::Path TwoTrees::path(unsigned tree, std::uint32_t index) const {
  const std::uint32_t m = size_[tree], bottom = height(index);
  const bool on_spine = on_right_spine(index, m);
  const std::uint32_t spine_height = on_spine ? bottom : top_height(index ^ m);
  Path path{0, 0, count_ones(m >> spine_height >> 1), on_spine};
  if (!on_spine) add_turns(tree, index, spine_height - 1, path);
  return path;
}

// Adds the edges from a node up to its ancestor of height `top` in a complete subtree.
void TwoTrees::add_turns(unsigned tree, std::uint32_t index, std::uint32_t top, Path& path) const {
  const std::uint32_t bottom = height(index);
  path.low = top - bottom;
  const std::uint32_t turns = index >> bottom >> 1 & ((1u << path.low) - 1);
  const std::uint32_t right = count_ones(turns);
  path.low_changes = turns_right_[tree] ? right : path.low - right;
}

TwoTrees::Edge TwoTrees::inner_edge(unsigned tree, std::uint32_t pe) const {
  const std::uint32_t index = node(tree, pe);
  Path way = path(tree, index);
  const bool spine_turns = turns_right_[tree] != (spine_differs_ && tree == 0);
  const std::uint32_t to_spine = way.on_spine ? 0 : 1;
  std::uint32_t edges = way.low + to_spine + way.spine;
  std::uint32_t changes =
      way.low_changes + (spine_turns ? way.spine : 0) + (spine_turns ? 0 : to_spine);
  const unsigned colour = (1 - tree) ^ (changes % 2);
  Edge edge{pe, static_cast<std::uint8_t>(colour), start_[tree] + 2 * edges - changes};
  if (use_ == Use::kAll) return edge;
  if (on_unused_spine(tree, index)) return {pe, edge.colour, 0};
  // Only edges below the top edge in use count, and the colour of the top edge.
  if (unused_is_right(tree)) {
    edges = way.low;
    changes = way.low_changes;
  } else if (index > root_[tree]) {  // right of the root, whose right edge is the top edge
    edges -= 1;
    changes -= spine_turns ? 1 : 0;
  } else {  // right of a lower node of the left spine
    add_turns(tree, index, top_height(index) - 1, way);
    edges = way.low;
    changes = way.low_changes;
  }
  edge.arrival = 2 * edges - changes + ((colour ^ changes % 2) == early_colour_ ? 0 : 1);
  return edge;
}

TwoTrees::Edge TwoTrees::edge(unsigned tree, std::uint32_t pe) const {
  if (is_inner(tree, pe)) return inner_edge(tree, pe);
  return leaf_edge(tree, inner_edge(1 - tree, pe));
}

TwoTrees::Both TwoTrees::edges(std::uint32_t pe) const {
  const unsigned tree = is_inner(0, pe) ? 0 : 1;
  Both both;
  both.of[tree] = inner_edge(tree, pe);
  both.of[1 - tree] = leaf_edge(1 - tree, both.of[tree]);
  return both;
}

// The edge into a leaf has the other colour than the edge into the same rank where it is an inner
// node.
TwoTrees::Edge TwoTrees::leaf_edge(unsigned tree, const Edge& other) const {
  Edge edge{other.pe, static_cast<std::uint8_t>(1 - other.colour), start_[tree]};
  const std::uint32_t above = parent(tree, edge.pe);
  if (above != 0) {
    edge.arrival = arrival(tree, inner_edge(tree, above), edge.colour);
  }
  return edge;
}

TwoTrees::Edge TwoTrees::child(unsigned tree, const Edge& from, std::uint32_t child_node,
                               bool left) const {
  Edge edge{pe(tree, child_node), from.colour, 0};
  if (edge.pe == 0 || child_node == 0) return {};
  if (is_inner(tree, edge.pe)) {
    if (changes_colour(tree, node(tree, from.pe), left)) edge.colour ^= 1;
  } else {
    edge.colour = static_cast<std::uint8_t>(1 - inner_edge(1 - tree, edge.pe).colour);
  }
  edge.arrival = arrival(tree, from, edge.colour);
  return edge;
}

TwoTrees::Both TwoTrees::children(unsigned tree, const Edge& from) const {
  if (!is_inner(tree, from.pe)) return {};
  const std::uint32_t index = node(tree, from.pe);
  const std::uint32_t right_index = right_node(index, size_[tree]);
  const Edge left = child(tree, from, left_node(index), true);
  Edge right{pe(tree, right_index), static_cast<std::uint8_t>(1 - left.colour), 0};
  if (left.pe == 0 || right_index == 0) {
    right = child(tree, from, right_index, false);
  } else {  // the colours of two children differ: no need to compute the second
    right.arrival = arrival(tree, from, right.colour);
  }
  if (tree == 1 && pairing_ == Pairing::kMirror) return {{right, left}};
  return {{left, right}};
}

TwoTrees::Edge TwoTrees::root_edge(unsigned tree) const {
  return {root(tree), static_cast<std::uint8_t>(1 - tree), start_[tree]};
}

// The last arrival in the subtree of `top` on the right spine, ignoring edges that are not in use.
// Off the right spine all subtrees are complete. One path from each node down changes no colour up
// to its last edge (where one of two leaves does not change), at two steps per edge. So the last
// arrival in such a subtree is 2 * height after its root, and only spines must be walked.
std::uint32_t TwoTrees::latest_from(unsigned tree, Edge top) const {
  std::uint32_t last = 0;
  const auto extend = [&last](std::uint32_t arrival) { last = arrival > last ? arrival : last; };
  while (top.pe != 0) {
    if (in_use(tree, top.pe)) extend(top.arrival);
    if (!is_inner(tree, top.pe)) break;
    const std::uint32_t index = node(tree, top.pe), left = left_node(index);
    const Edge below = child(tree, top, left, true);
    if (tree == 1 && pairing_ == Pairing::kShift && left == 2) {
      extend(child(tree, below, 3, false).arrival);  // its left leaf was dropped: not complete
    } else if (below.pe != 0) {
      extend(below.arrival + 2 * height(left));
    }
    top = child(tree, top, right_node(index, size_[tree]), false);
  }
  return last;
}

// Right of the left spine: the rest of the right spine, and complete subtrees below the root.
std::uint32_t TwoTrees::latest_right_of_left_spine(unsigned tree) const {
  Edge edge = root_edge(tree);
  if (!is_inner(tree, edge.pe)) return 0;
  const std::uint32_t right = right_node(node(tree, edge.pe), size_[tree]);
  std::uint32_t last = latest_from(tree, child(tree, edge, right, false));
  while ((edge = child(tree, edge, left_node(node(tree, edge.pe)), true)).pe != 0) {
    if (!is_inner(tree, edge.pe)) break;
    const std::uint32_t below = right_node(node(tree, edge.pe), size_[tree]);
    const Edge top = child(tree, edge, below, false);
    if (top.pe == 0) continue;
    const std::uint32_t arrival = top.arrival + 2 * height(below);
    last = arrival > last ? arrival : last;
  }
  return last;
}

std::uint32_t TwoTrees::latest(unsigned tree) const {
  const bool walks_left = use_ != Use::kAll && !unused_is_right(tree);
  return walks_left ? latest_right_of_left_spine(tree) : latest_from(tree, root_edge(tree));
}

}  // namespace espalier

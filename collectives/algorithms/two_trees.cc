#include "collectives/algorithms/two_trees.h"

namespace espalier {
namespace {

std::uint32_t height(std::uint32_t node) { return static_cast<std::uint32_t>(__builtin_ctz(node)); }

// The greatest power of two <= x; x >= 1.
std::uint32_t top_bit(std::uint32_t x) { return 1u << (31 - __builtin_clz(x)); }

// The shape of T1 with m nodes 1 .. m (001 section 3, where they are 0 .. m-1): in order, a
// complete left subtree of 2^h - 1 nodes, on the right the same construction with the rest.
struct Above {
  std::uint32_t node;
  bool left;  // it is the left child
};

Above above_node(std::uint32_t node, std::uint32_t m) {
  const std::uint32_t bit = node & -node;
  const bool right = (node & bit << 1) != 0 || node + bit > m;
  return {right ? node - bit : node + bit, !right};
}

// 0 where there is none.
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

// Whether node is the root of T1 with m nodes or on the path of right children from it.
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

// Of the two assignments of colours to steps the better one.
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
  const std::uint32_t at = node(tree, pe);
  return at == root_[tree] ? 0 : this->pe(tree, above_node(at, size_[tree]).node);
}

// Whether the edge from an inner node to an inner child has another colour than the edge into the
// node. Mirroring: 001 Fig. 3 (where "bitand i = 1" must read "is not 0"). Shifting: checked
// by exhaustion for n <= 3000; the colour turns at right children in T1 and at left ones
// in T2, but for the nodes of T1's right spine where n = 0 or 1 (mod 4) and n has an even number of
// ones, which do it the other way round.
bool TwoTrees::changes_colour(unsigned tree, std::uint32_t parent, bool left) const {
  const bool differs = spine_differs_ && tree == 0 && on_right_spine(parent, n_);
  return left != (turns_right_[tree] != differs);
}

// The left spine is the powers of two, up to the root.
bool TwoTrees::on_unused_spine(unsigned tree, std::uint32_t node) const {
  if (use_ == Use::kAll) return false;
  return use_ == Use::kUp ? on_right_spine(node, size_[tree]) : (node & (node - 1)) == 0;
}

// At a child, over an edge of that colour.
std::uint32_t TwoTrees::arrival(unsigned tree, const Edge& from, unsigned colour) const {
  if (on_unused_spine(tree, node(tree, from.pe))) return colour == early_colour_ ? 0 : 1;
  return from.arrival + (from.colour != colour ? 1 : 2);
}

TwoTrees::Edge TwoTrees::inner_edge(unsigned tree, std::uint32_t pe) const {
  // Steps from the arrival at the top of the subtree that begins by itself; changes up to its edge,
  // and up to the root's.
  std::uint32_t steps = 0, changes = 0;
  bool below_spine = true;
  unsigned top_changes = 0;
  for (std::uint32_t at = node(tree, pe); at != root_[tree];) {
    const Above above = above_node(at, size_[tree]);
    const std::uint32_t change = changes_colour(tree, above.node, above.left) ? 1 : 0;
    if (below_spine && on_unused_spine(tree, above.node)) {
      below_spine = false;
      top_changes = changes;
    }
    if (below_spine) steps += 2 - change;
    changes += change;
    at = above.node;
  }
  const unsigned root_colour = 1 - tree;
  const unsigned colour = root_colour ^ (changes % 2);
  if (use_ == Use::kAll) return {pe, static_cast<std::uint8_t>(colour), start_[tree] + steps};
  const unsigned top_colour = colour ^ (top_changes % 2);
  steps += top_colour == early_colour_ ? 0 : 1;
  return {pe, static_cast<std::uint8_t>(colour), steps};
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

// A leaf's edge has the other colour than its edge in the tree where it is inner.
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
  const std::uint32_t at = node(tree, from.pe);
  const std::uint32_t right_at = right_node(at, size_[tree]);
  const Edge left = child(tree, from, left_node(at), true);
  Edge right{pe(tree, right_at), static_cast<std::uint8_t>(1 - left.colour), 0};
  if (left.pe == 0 || right_at == 0) {
    right = child(tree, from, right_at, false);
  } else {  // two children's colours differ: no need to find the second
    right.arrival = arrival(tree, from, right.colour);
  }
  if (tree == 1 && pairing_ == Pairing::kMirror) return {{right, left}};
  return {{left, right}};
}

TwoTrees::Edge TwoTrees::root_edge(unsigned tree) const {
  return {root(tree), static_cast<std::uint8_t>(1 - tree), start_[tree]};
}

// The last arrival in the subtree left of a node of the right spine; 0 if there is none. Off the
// right spine all subtrees are complete and one path from each node down turns no colour, two steps
// an edge, to the last edge (where one of two leaves does not turn): 2 * height after its root. So
// only spines are walked.
std::uint32_t TwoTrees::latest_left(unsigned tree, const Edge& spine) const {
  const std::uint32_t left = left_node(node(tree, spine.pe));
  const Edge top = child(tree, spine, left, true);
  if (tree == 1 && pairing_ == Pairing::kShift && left == 2) {
    // The one subtree that is not complete: its left leaf was dropped.
    return child(tree, top, 3, false).arrival;
  }
  return top.pe == 0 ? 0 : top.arrival + 2 * height(left);
}

// The same in the subtree of `top` on the right spine, but for edges that are not in use.
std::uint32_t TwoTrees::latest_from(unsigned tree, Edge top) const {
  std::uint32_t last = 0;
  const auto extend = [&last](std::uint32_t arrival) { last = arrival > last ? arrival : last; };
  while (top.pe != 0) {
    if (in_use(tree, top.pe)) extend(top.arrival);
    if (!is_inner(tree, top.pe)) break;
    extend(latest_left(tree, top));
    top = child(tree, top, right_node(node(tree, top.pe), size_[tree]), false);
  }
  return last;
}

// Right of the left spine: the rest of the right spine, and below the root complete subtrees.
std::uint32_t TwoTrees::latest_right_of_left_spine(unsigned tree) const {
  Edge at = root_edge(tree);
  if (!is_inner(tree, at.pe)) return 0;
  const std::uint32_t right = right_node(node(tree, at.pe), size_[tree]);
  std::uint32_t last = latest_from(tree, child(tree, at, right, false));
  while ((at = child(tree, at, left_node(node(tree, at.pe)), true)).pe != 0) {
    if (!is_inner(tree, at.pe)) break;
    const std::uint32_t below = right_node(node(tree, at.pe), size_[tree]);
    const Edge top = child(tree, at, below, false);
    if (top.pe == 0) continue;
    const std::uint32_t arrival = top.arrival + 2 * height(below);
    last = arrival > last ? arrival : last;
  }
  return last;
}

std::uint32_t TwoTrees::latest(unsigned tree) const {
  return use_ == Use::kDown ? latest_right_of_left_spine(tree) : latest_from(tree, root_edge(tree));
}

}  // namespace espalier

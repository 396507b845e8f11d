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

TwoTrees::TwoTrees(std::uint32_t n, Pairing pairing)
    : n_(n), pairing_(pairing), size_{n, pairing == Pairing::kShift ? n + 1 : n} {
  root_[0] = top_bit(size_[0]);
  root_[1] = top_bit(size_[1]);
  if (pairing == Pairing::kMirror) {
    turns_right_[0] = turns_right_[1] = n / 2 % 2 == 1;
  } else {
    turns_right_[0] = true;
    spine_differs_ = (n % 4 == 0 || n % 4 == 1) && __builtin_parity(n) == 0;
  }
  Arrivals arrivals[2];
  for (unsigned tree = 0; tree < 2; ++tree) add_right_spine(tree, root_edge(tree), arrivals[tree]);
  first_ = arrivals[0].last > arrivals[1].last ? 0 : 1;
  start_[1 - first_] = 1;
  const std::uint32_t end_1 = arrivals[0].last + start_[0];
  const std::uint32_t end_2 = arrivals[1].last + start_[1];
  last_arrival_ = end_1 > end_2 ? end_1 : end_2;
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

TwoTrees::Edge TwoTrees::inner_edge(unsigned tree, std::uint32_t pe) const {
  std::uint32_t edges = 0, changes = 0;
  for (std::uint32_t at = node(tree, pe); at != root_[tree]; ++edges) {
    const Above above = above_node(at, size_[tree]);
    changes += changes_colour(tree, above.node, above.left) ? 1 : 0;
    at = above.node;
  }
  const unsigned colour = (1 - tree) ^ (changes % 2);
  return {pe, static_cast<std::uint8_t>(colour), start_[tree] + 2 * edges - changes};
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
    const Edge from = inner_edge(tree, above);
    edge.arrival = from.arrival + (from.colour != edge.colour ? 1 : 2);
  }
  return edge;
}

TwoTrees::Edge TwoTrees::child(unsigned tree, const Edge& from, std::uint32_t child_node,
                               bool left) const {
  Edge edge{pe(tree, child_node), from.colour, from.arrival};
  if (edge.pe == 0 || child_node == 0) return {};
  if (is_inner(tree, edge.pe)) {
    if (changes_colour(tree, node(tree, from.pe), left)) edge.colour ^= 1;
  } else {
    edge.colour = static_cast<std::uint8_t>(1 - inner_edge(1 - tree, edge.pe).colour);
  }
  edge.arrival += edge.colour != from.colour ? 1 : 2;
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
    right.arrival = from.arrival + (right.colour != from.colour ? 1 : 2);
  }
  if (tree == 1 && pairing_ == Pairing::kMirror) return {{right, left}};
  return {{left, right}};
}

TwoTrees::Edge TwoTrees::root_edge(unsigned tree) const {
  return {root(tree), static_cast<std::uint8_t>(1 - tree), start_[tree]};
}

bool TwoTrees::leftmost(unsigned tree, std::uint32_t pe) const {
  const std::uint32_t at = node(tree, pe);
  return (at & (at - 1)) == 0;  // the left spine is the powers of two, up to the root
}

bool TwoTrees::rightmost(unsigned tree, std::uint32_t pe) const {
  return on_right_spine(node(tree, pe), size_[tree]);
}

// Off the right spine all subtrees are complete and one path from each node down turns no colour,
// two steps an edge, to the last edge (where one of two leaves does not turn): 2 * height after its
// root. So only spines are walked.
void TwoTrees::add_left_subtree(unsigned tree, const Edge& spine, Arrivals& into) const {
  const std::uint32_t left = left_node(node(tree, spine.pe));
  const Edge top = child(tree, spine, left, true);
  if (top.pe == 0) return;
  into.first = top.arrival < into.first ? top.arrival : into.first;
  std::uint32_t last = top.arrival + 2 * height(left);
  if (tree == 1 && pairing_ == Pairing::kShift && left == 2) {
    // The one subtree that is not complete: its left leaf was dropped.
    last = child(tree, top, 3, false).arrival;
  }
  into.last = last > into.last ? last : into.last;
}

void TwoTrees::add_right_spine(unsigned tree, Edge top, Arrivals& into) const {
  while (top.pe != 0) {
    into.first = top.arrival < into.first ? top.arrival : into.first;
    into.last = top.arrival > into.last ? top.arrival : into.last;
    if (!is_inner(tree, top.pe)) break;
    add_left_subtree(tree, top, into);
    top = child(tree, top, right_node(node(tree, top.pe), size_[tree]), false);
  }
}

TwoTrees::Arrivals TwoTrees::arrivals_but_rightmost() const {
  Arrivals arrivals;
  for (unsigned tree = 0; tree < 2; ++tree) {
    for (Edge at = root_edge(tree); at.pe != 0 && is_inner(tree, at.pe);
         at = child(tree, at, right_node(node(tree, at.pe), size_[tree]), false)) {
      add_left_subtree(tree, at, arrivals);
    }
  }
  return arrivals;
}

TwoTrees::Arrivals TwoTrees::arrivals_but_leftmost() const {
  Arrivals arrivals;
  for (unsigned tree = 0; tree < 2; ++tree) {
    Edge at = root_edge(tree);
    if (!is_inner(tree, at.pe)) continue;
    add_right_spine(tree, child(tree, at, right_node(node(tree, at.pe), size_[tree]), false),
                    arrivals);
    // Below the root right subtrees of the left spine are complete.
    while ((at = child(tree, at, left_node(node(tree, at.pe)), true)).pe != 0 &&
           is_inner(tree, at.pe)) {
      const std::uint32_t right = right_node(node(tree, at.pe), size_[tree]);
      const Edge top = child(tree, at, right, false);
      if (top.pe == 0) continue;
      const std::uint32_t last = top.arrival + 2 * height(right);
      arrivals.first = top.arrival < arrivals.first ? top.arrival : arrivals.first;
      arrivals.last = last > arrivals.last ? last : arrivals.last;
    }
  }
  return arrivals;
}

void TwoTrees::start_with(unsigned first) {
  const std::uint32_t before = start_[0];
  first_ = first;
  start_[first] = 0;
  start_[1 - first] = 1;
  if (start_[0] == before) return;
  Arrivals arrivals;
  for (unsigned tree = 0; tree < 2; ++tree) add_right_spine(tree, root_edge(tree), arrivals);
  last_arrival_ = arrivals.last;
}

}  // namespace espalier

#include "collectives/algorithms/trees/pair_trees.h"

namespace espalier {

PairTrees::Place PairTrees::place(std::uint32_t pe) const {
  Place place{pe, trees_.edges(pe), trees_.is_inner(0, pe) ? 0u : 1u, {}, {}};
  for (const Edge& child : trees_.children(place.inner, place.edges.of[place.inner]).of) {
    if (child.pe != 0) (child.pe < pe ? place.left : place.right) = child;
  }
  return place;
}

bool PairTrees::Place::upper_has_parent(unsigned tree) const {
  const unsigned colour = edges.of[tree].colour;
  if (left.pe != 0) return colour == left.colour;
  if (right.pe != 0) return colour != right.colour;
  return true;
}

}  // namespace espalier

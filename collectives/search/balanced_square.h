#pragma once
// Latin squares whose rows are permutations that load a line of nodes evenly. Internal to
// collectives/search.

#include <cstdint>
#include <vector>

namespace espalier::searched {

// Above this number of nodes, balanced_square() does not search.
inline constexpr std::uint32_t kMaxBalanced = 32;

// A permutation of the nodes 0 .. n-1 of a line: node c sends to node to[c], along the line.
struct LinePermutation {
  std::vector<std::uint32_t> to;
  // The group of each node's message; messages of one group share no directed link of the line.
  std::vector<std::uint32_t> group;
  std::uint32_t groups = 1;  // the maximum number of messages on a directed link, at least 1
  bool is_identity = false;
};

// Returns n permutations that together contain every ordered pair of nodes once, pairs (c, c)
// included; n >= 1. The sum of their maximum link loads is floor(n^2 / 4), the number of pairs that
// cross the middle: no such permutations have a smaller sum. For n <= kMaxBalanced no two loads
// differ by more than 1; a longer line has the n cyclic shifts. The same n gives the same
// permutations.
[[nodiscard]] std::vector<LinePermutation> balanced_square(std::uint32_t n);

}  // namespace espalier::searched

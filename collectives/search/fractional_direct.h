#pragma once
// The fractional tree of single ranks for simplex ports, which either send or receive in a step.
// Host only.

#include <cstdint>

#include "collectives/search/simplex_family.h"
#include "collectives/search/streams.h"

namespace espalier::searched {

struct DirectTree {
  std::uint32_t run_length = 1;
  struct TreeGroup {
    std::uint32_t first = 0, size = 0;  // its ranks are first .. first + size - 1
    std::int32_t arrival = -1;          // step in which the head gets block 0; -1: the source
    PassingSteps steps;                 // counted from `arrival`
    std::uint32_t down = 0, right = 0;  // ranks that head the successors; 0: none
  };
  std::vector<TreeGroup> groups;
  std::uint32_t depth = 0;  // steps until the last rank has its first block
};

// Returns the tree of least depth for `ranks` ranks, with the family's passings; rank 0 is the
// source.
[[nodiscard]] DirectTree direct_tree(const SimplexFamily& family, std::uint32_t ranks);

}  // namespace espalier::searched

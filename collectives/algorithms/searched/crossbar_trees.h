#pragma once
// Fractional trees on hierarchical crossbars ([Sanders03], section 4). The paper gives no layout;
// this one was found by search. Host only.

#include <cstdint>

#include "collectives/algorithms/searched/fractional_groups.h"

namespace espalier::searched {

struct CrossbarShape {
  std::uint32_t modules = 1;  // A
  std::uint32_t ranks = 1;    // B, per module
};

// Variant A: one group per module; these groups form a global binary tree. A local fractional tree
// serves the other ranks of the module. At most two channels into and two out of a module carry a
// block in a step. Requires run <= ranks.
[[nodiscard]] FractionalForest crossbar_a(const CrossbarShape& shape, std::uint32_t root,
                                          std::uint32_t run_length);
// Variant B: two groups per module. At most one channel in and two out. Requires 2*run <= ranks.
[[nodiscard]] FractionalForest crossbar_b(const CrossbarShape& shape, std::uint32_t root,
                                          std::uint32_t run_length);

}  // namespace espalier::searched

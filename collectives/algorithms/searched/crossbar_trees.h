#pragma once
// Fractional trees on hierarchical crossbars (000, Sanders and Sibeyn, section 4, which gives no
// layout: this one was found by search). Host only.

#include <cstdint>

#include "collectives/algorithms/searched/fractional_groups.h"

namespace espalier::searched {

struct CrossbarShape {
  std::uint32_t modules = 1;  // A
  std::uint32_t ranks = 1;    // B, of each module
};

// Variant A: a group in each module makes a global binary tree, a local fractional tree has the
// module's other ranks. At most two channels into and two out of a module carry a block in a step.
// run <= ranks.
[[nodiscard]] FractionalForest crossbar_a(const CrossbarShape& shape, std::uint32_t root,
                                          std::uint32_t run);
// Variant B: two groups in each module. At most one channel in, two out. 2*run <= ranks.
[[nodiscard]] FractionalForest crossbar_b(const CrossbarShape& shape, std::uint32_t root,
                                          std::uint32_t run);

}  // namespace espalier::searched

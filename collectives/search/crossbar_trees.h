#pragma once
// Fractional trees on hierarchical crossbars ([Sanders03], section 4). The paper gives no layout;
// this one was found by search. Host only.

#include <cstdint>
#include <span>

#include "collectives/search/fractional_groups.h"

namespace espalier::searched {

// `sizes`: A, B, ... of crossbar:AxB...; the last one is the number of ranks per innermost module.
//
// Variant A: one group per module; these groups form a global binary tree. A local fractional tree
// serves the other ranks of the module. At most two channels into and two out of a module of any
// level carry a block in a step. Requires run_length <= sizes.back().
[[nodiscard]] FractionalForest crossbar_a(std::span<const std::uint32_t> sizes, std::uint32_t root,
                                          std::uint32_t run_length);
// Variant B: two groups per module. At most one channel in and two out. Requires
// 2 * run_length <= sizes.back().
[[nodiscard]] FractionalForest crossbar_b(std::span<const std::uint32_t> sizes, std::uint32_t root,
                                          std::uint32_t run_length);

}  // namespace espalier::searched

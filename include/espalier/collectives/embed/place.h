#pragma once
// Placing: each node takes the part of a virtual rank of a routed schedule. Host only.

#include <cstdint>
#include <span>

#include "espalier/base/result.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::embed {

// Checks that ranks of this collective may be on nodes of other numbers. Error: its result depends
// on the numbering of ranks.
[[nodiscard]] Result<void> check_placeable(Collective collective);

// Turns the program of virtual rank v into that of rank node_of[v]: the node's own number, its
// peers and the root. The order of ranks is lost, so a schedule that combines requires a
// commutative operator. Links are claimed for lock step only. The identity permutation changes
// nothing. kUnsupported: see check_placeable(); kTooLarge: a rule gives more peers than a program
// can list.
[[nodiscard]] Status place(std::span<const std::uint32_t> node_of, Program& program);

// Does the same for all programs of a schedule, which are ordered by virtual rank before and by
// node after. On error they are unchanged.
[[nodiscard]] Status place_all(std::span<const std::uint32_t> node_of, Programs& programs);

}  // namespace espalier::embed

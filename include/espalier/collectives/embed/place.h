#pragma once
// Placing: every node does what a virtual rank of a direct schedule does. Host only.

#include <cstdint>
#include <span>
#include <string>

#include "espalier/collectives/schedule/programs.h"

namespace espalier::embed {

// Whether a schedule of this collective may stand otherwise than rank r on node r: what comes out
// must not depend on who is which rank. Empty if so; else why not.
[[nodiscard]] std::string unplaceable(Collective collective);

// Makes the program of virtual rank v that of rank node_of[v]: its own number, its peers', and the
// root's. The order of ranks is lost, so where operands are combined the operator must commute;
// links are claimed for lock step only. A permutation that moves nobody changes nothing.
// kUnsupported: see unplaceable(); kTooLarge: more peers by rule than a program can list.
[[nodiscard]] Status place(std::span<const std::uint32_t> node_of, Program& program);

// The same for all of a schedule, which are by virtual rank before and by node after. On an error
// they are as they were.
[[nodiscard]] Status place_all(std::span<const std::uint32_t> node_of, Programs& programs);

}  // namespace espalier::embed

#pragma once
// Cases whose messages all go to neighbours, and lowered cases in which one hop is in a wrong step.

#include <string>

#include "tests/contention/cases.h"
#include "tests/contention/dice.h"

namespace espalier::contention {

// Lowers the case's programs if they are routed and can be lowered. Returns the addition to the
// case's name.
[[nodiscard]] std::string lower_case(Dice& dice, ContentionCase& contention_case);

// Moves one hop of lowered programs, at both its ends, to another step in which every property
// except the lanes of links still holds; prefers a step in which another hop uses the link. Returns
// the addition to the case's name; empty, with the case unchanged, if no such move was found.
[[nodiscard]] std::string move_hop(Dice& dice, ContentionCase& contention_case);

}  // namespace espalier::contention

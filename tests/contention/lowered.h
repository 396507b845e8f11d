#pragma once
// Cases whose messages all go to neighbours, and such with a hop in a step that is not its own.

#include <string>

#include "tests/contention/cases.h"
#include "tests/contention/dice.h"

namespace espalier::contention {

// Lowers the case's programs, if they are direct and it can be done. What its name then adds.
[[nodiscard]] std::string lower_case(Dice& dice, Case& at);

// Puts one hop of lowered programs into another step, with both its ends, so that all but the
// lanes of links still holds: preferably into one in which its link is taken. What its name then
// adds; empty, and nothing is changed, where no such move was found.
[[nodiscard]] std::string move_hop(Dice& dice, Case& at);

}  // namespace espalier::contention

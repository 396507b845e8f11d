#pragma once
// Checks a schedule at an N that is far too large to run: the steps around the ends of its phases,
// and some between.

#include <string>

#include "espalier/collectives/schedule/programs.h"
#include "tests/contention/dice.h"
#include "tests/random/brute.h"

namespace espalier::random {

// Empty if no error is seen in windows at an N up to 2^29 that the dice choose, and the machine's
// timetable begins with the events expected there.
[[nodiscard]] std::string check_far(const Programs& programs, Brute& brute, contention::Dice& dice);

}  // namespace espalier::random

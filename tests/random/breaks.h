#pragma once
// Breaks one program of a schedule, or one number of all of them, at random.

#include <cstdint>
#include <string>

#include "collectives/schedule/programs.h"
#include "tests/contention/dice.h"

namespace espalier::random {

using contention::Dice;

// What was done: its kind, for tables, and where. An empty kind: nothing.
struct Break {
  std::string kind, where;
};

// Changes `programs`; a program may still be right, or be refused by a loader.
[[nodiscard]] Break break_one(Programs& programs, Dice& dice);

}  // namespace espalier::random

#pragma once
// Breaks one program of a schedule at random, or the window of all of them.

#include <string>

#include "espalier/collectives/schedule/programs.h"
#include "tests/contention/dice.h"

namespace espalier::random {

using contention::Dice;

// A change: its kind, for tables, and its place. An empty kind: no change.
struct Break {
  std::string kind, where;
};

// Changes one of `programs`, which may still be right, or be refused by a loader.
[[nodiscard]] Break break_one(Programs& programs, Dice& dice);
// Changes the window of all nodes: on one it would be a disagreement.
[[nodiscard]] Break lengthen_windows(Programs& programs);

}  // namespace espalier::random

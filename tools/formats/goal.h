#pragma once
// GOAL: the input of LogGOPSim, as text for its txt2bin. docs/formats.md. Host only.

#include <string>

#include "tools/formats/sized.h"

namespace espalier::tools::formats {

// Writes every operation of every node. A message's tag is its number on its link. An operation
// requires those of Operation::after, and a send begins after the send before it on its link.
[[nodiscard]] std::string write_goal(const SizedOperations& sized);

}  // namespace espalier::tools::formats

#pragma once
// One run of a play under rules 2 to 6 of docs/architecture.md, with random choice among all events
// that can happen. Part of the interpreter.

#include <cstdint>
#include <string>

#include "tests/mutation/interpreter.h"

namespace espalier::mutation {

// The play's moves lie inside its memory and name ranks that exist. Empty if every rank finishes
// with the correct result, otherwise one line with the failure.
[[nodiscard]] std::string run_skew(const Play& play, std::uint64_t seed);

}  // namespace espalier::mutation

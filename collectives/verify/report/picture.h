#pragma once
// The picture of a schedule: ranks down, steps across, transfers as arrows. A fault is red.

#include <cstdint>
#include <string>

#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

// Returns a self-contained SVG of the schedule for N = `blocks` (0: the smallest N that can occur).
// `fault`: null, or the counterexample to mark; if it has an N, that N is drawn. A large schedule
// is drawn around the fault, or from its beginning. Only the programs that are drawn are read.
// Programs that no node would load are left out.
[[nodiscard]] std::string draw_svg(const topology::Topology& topology, const Programs& programs,
                                   std::int64_t blocks, const Counterexample* fault);

}  // namespace espalier::verify

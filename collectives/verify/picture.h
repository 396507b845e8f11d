#pragma once
// The picture of a schedule: ranks down, steps across, transfers as arrows; a fault marked in red.

#include <cstdint>
#include <string>

#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

// A self-contained SVG of the schedule for N = `blocks` (0: the smallest that can occur). `fault`:
// null, or the counterexample to mark; its N is taken where it has one. Of large schedules the
// ranks and steps around the fault, or the first ones. Reads the programs drawn, and no others.
// Programs that no node would load are left out.
[[nodiscard]] std::string draw_svg(const topology::Topology& topology, const Programs& programs,
                                   std::int64_t blocks, const Counterexample* fault);

}  // namespace espalier::verify

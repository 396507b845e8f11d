#pragma once
// The verdict on a list of programs, for tests.

#include <vector>

#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

// Verifies `programs`, one for each node.
[[nodiscard]] inline Verdict verdict_of(const topology::Topology& topology,
                                        const std::vector<OwnedProgram>& programs,
                                        const VerifyOptions& options = {}) {
  return verify(
      topology, [&](std::uint32_t node) -> const Program& { return programs[node]; }, options);
}

}  // namespace espalier::verify

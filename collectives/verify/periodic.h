#pragma once
// The proof for every N at once, of periodic schedules. Internal to collectives/verify.

#include <cstdint>
#include <string>

#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

// Above this the exhaustive check takes too much memory to judge, or to phrase a counterexample.
inline constexpr std::uint32_t kMostRanksToPhrase = 4096;

enum class Outcome {
  kProven,   // for every N
  kRefused,  // verdict.counterexample says why
  kUnknown,  // not periodic: verdict.limited says why
};

// Asks for each node's program once; again if the fabric routes, and to phrase a counterexample.
// Memory: about 25 bytes per progression, and one proof per form of stage (stage_proof.h).
[[nodiscard]] Outcome prove_every_blocks(const topology::Topology& topology,
                                         const Programs& programs, const Options& options,
                                         Verdict& verdict);

}  // namespace espalier::verify

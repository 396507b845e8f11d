#pragma once
// The proof for every N at once, of periodic schedules. Internal to collectives/verify.

#include <cstdint>

#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// Maximum number of ranks for which an error is also expanded exhaustively. Above it that takes too
// much memory.
inline constexpr std::uint32_t kMaxRanksToPhrase = 4096;

enum class Outcome {
  kProven,   // for every N
  kRefused,  // wrong: verdict.counterexample is set
  kUnknown,  // not periodic: verdict.limited is the reason
};

// Proves the schedule for every N at once. Asks for the program of each node once, and again if the
// fabric routes or an error is expanded. Memory: about 25 bytes per progression, and one proof per
// form of stage (stage_proof.h).
[[nodiscard]] Outcome prove_every_blocks(const topology::Topology& topology,
                                         const Programs& programs, const VerifyOptions& options,
                                         Verdict& verdict);

}  // namespace espalier::verify

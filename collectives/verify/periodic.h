#pragma once
// The proof for every N at once, of rigid schedules. Internal to collectives/verify.

#include <cstdint>
#include <string>

#include "collectives/verify/verify.h"

namespace espalier::verify {

// Above this the exhaustive check takes too much memory to judge, or to phrase a counterexample.
inline constexpr std::uint32_t kMostRanksToPhrase = 4096;

enum class Outcome {
  kProven,   // for every N
  kRefused,  // verdict.counterexample says why
  kUnknown,  // not rigid: verdict.limited says why
};

// Asks for each rank's program once, and again only to phrase a counterexample. Memory: a few dozen
// bytes an action, and one record for each shape of rank.
[[nodiscard]] Outcome prove_every_blocks(const topology::Topology& topology,
                                         const Programs& programs, const Options& options,
                                         Verdict& verdict);

}  // namespace espalier::verify

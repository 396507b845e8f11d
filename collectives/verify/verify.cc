#include "espalier/collectives/verify/verify.h"

#include "collectives/verify/every_n/periodic.h"
#include "collectives/verify/exhaustive_check.h"

namespace espalier::verify {
namespace {

Verdict prove(const topology::Topology& topology, const Programs& programs,
              const VerifyOptions& options) {
  Verdict verdict;
  const bool at_once = options.method != Method::kExhaustive && options.max_blocks == 0;
  const Outcome outcome =
      at_once ? prove_every_blocks(topology, programs, options, verdict) : Outcome::kUnknown;
  if (outcome == Outcome::kProven || verdict.counterexample.too_large) return verdict;
  if (options.method == Method::kPeriodic) {
    if (outcome == Outcome::kUnknown) {
      verdict.counterexample.message =
          "form: it cannot be proven for every N at once: " + verdict.limited;
    }
    return verdict;
  }
  if (outcome == Outcome::kRefused && topology.ranks() > kMaxRanksToPhrase) return verdict;
  Verdict exhaustive = check_exhaustively(topology, programs, options);
  const bool phrased = !exhaustive.valid && !exhaustive.counterexample.too_large;
  if (outcome == Outcome::kRefused && !phrased) return verdict;
  if (!exhaustive.for_all) {
    exhaustive.limited = at_once ? verdict.limited : "only these N were asked for";
  }
  return exhaustive;
}

}  // namespace

Verdict verify(const topology::Topology& topology, const Programs& programs,
               const VerifyOptions& options) {
  Verdict verdict = prove(topology, programs, options);
  if (options.progress) options.progress(1);
  return verdict;
}

}  // namespace espalier::verify

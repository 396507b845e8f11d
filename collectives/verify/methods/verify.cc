#include "espalier/collectives/verify/verify.h"

#include "collectives/verify/every_n/periodic.h"
#include "collectives/verify/methods/exhaustive_check.h"
#include "espalier/collectives/schedule/programs.h"

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

// Adds to a verdict that refuses ASYNC whether SLOT would hold. The proof of the same programs with
// SLOT says so: lock step may keep the links for the N of the counterexample, and not for larger N.
void add_lock_step(const topology::Topology& topology, const Programs& programs,
                   const VerifyOptions& options, Verdict& verdict) {
  OwnedProgram slot;
  const Programs with_slot = [&](std::uint32_t node) -> const Program& {
    slot = programs(node);
    slot.contention = ContentionGuarantee::kSlot;
    return slot;
  };
  const Verdict lock_step = prove(topology, with_slot, options);
  const Counterexample& other = lock_step.counterexample;
  std::string& message = verdict.counterexample.message;
  verdict.slot = lock_step.valid;
  if (lock_step.valid) {
    message += lock_step.for_all
                   ? ", and only SLOT holds"
                   : ", and only SLOT holds, up to N = " + std::to_string(lock_step.proven_blocks);
  } else if (other.property == Property::kLinks && !other.too_large) {
    message +=
        ", and SLOT does not hold either, from N = " + std::to_string(other.blocks) + " onward";
  }
}

}  // namespace

Verdict verify(const topology::Topology& topology, const Programs& programs,
               const VerifyOptions& options) {
  Verdict verdict = prove(topology, programs, options);
  const Counterexample& wrong = verdict.counterexample;
  // A message about a missing link names no N.
  if (!verdict.valid && wrong.property == Property::kLinks && !wrong.too_large &&
      wrong.blocks > 0 && topology.ranks() <= kMaxRanksToPhrase &&
      programs(0).contention == ContentionGuarantee::kAsync) {
    add_lock_step(topology, programs, options, verdict);
  }
  if (options.progress) options.progress(1);
  return verdict;
}

}  // namespace espalier::verify

#pragma once
// Property steps: each phase takes exactly the steps that it claims, their sum is the claim, and
// the claimed lower bound is one. Internal to collectives/verify.

#include <cstdint>
#include <vector>

#include "collectives/verify/properties/counterexample.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/proof_result.h"

namespace espalier::verify {

// Checks the claims of steps and of the bound for N = schedule.blocks.
[[nodiscard]] Finding check_steps(const ExpandedSchedule& schedule);

// Checks the claimed bound for N = schedule.blocks: it exceeds neither the greatest of
// schedule.bounds nor `steps`.
[[nodiscard]] Finding check_bound(const ExpandedSchedule& schedule, std::int64_t steps);

// Steps of a schedule for every N. From N = stride on they grow by a constant from N to N + stride.
struct Steps {
  std::vector<std::int64_t> first;  // for N = 1 .. 3 stride; 0 if no message has that many blocks
  std::int64_t stride = 1;          // blocks; a multiple of the residue's modulus
};
// Checks the claimed bound for every N. Undecided if the claim and the steps repeat in too long a
// cycle.
[[nodiscard]] ProofResult check_bound_for_all(ExpandedSchedule& schedule, const Steps& steps);

// Checks that no lower bound exceeds the steps of an otherwise valid schedule. A bound that does is
// itself wrong.
[[nodiscard]] Finding check_known_bounds(const ExpandedSchedule& schedule, std::int64_t steps);

}  // namespace espalier::verify

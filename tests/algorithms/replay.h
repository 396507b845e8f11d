#pragma once
// Test helper: replays a schedule step by step for one N and checks all guarantees of the
// generators: ports (not of links with several lanes), matching transfers, exact `after`, slot
// reuse within the window, ordered data flow, results and claims. Host only; independent of the
// verifier.

#include <cstdint>

#include "espalier/base/result.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::replay {

// Returns the programs of all nodes. Fails if one cannot be generated, if check_program rejects it,
// or if fields differ that must be equal in all.
[[nodiscard]] Result<Programs> generate(const Algorithm& algorithm,
                                        const CollectiveParameters& parameters);

// Replays a schedule with N = blocks. Returns 1 + the last step with an event; otherwise the first
// check that failed, and where.
[[nodiscard]] Result<std::int64_t> run(const Programs& programs, std::int64_t blocks);

// Checks that every transfer of rank `me` (its first and its third block) is also in its peer's
// program, in the same step: for schedules too large to replay. Returns the number of transfers.
[[nodiscard]] Result<int> neighbours(const Algorithm& algorithm,
                                     const CollectiveParameters& parameters, std::uint32_t me);

}  // namespace espalier::replay

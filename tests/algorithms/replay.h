#pragma once
// Test helper: replays a schedule step by step for one N and checks all guarantees of the
// generators: ports (not of links with several lanes), matching transfers, exact `after`, slot
// reuse within the window, ordered data flow, results and claims. Host only; independent of the
// verifier.

#include <cstdint>

#include "espalier/base/result.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::replay {

// Returns the programs of all nodes. Fails if one cannot be generated, if check_program rejects it,
// or if fields differ that must be equal in all.
[[nodiscard]] Result<Programs> generate(const Algorithm& algorithm,
                                        const CollectiveParameters& parameters);

// Replays a schedule with N = blocks. Returns 1 + the last step with an event; otherwise the first
// check that failed, and where.
[[nodiscard]] Result<std::int64_t> run(const Programs& programs, std::int64_t blocks);

struct LinkOutcome {
  std::int64_t steps = 0;
  std::int64_t held = 0;  // maximum steps from a router's receipt of a message to sending it
};
// Replays a schedule that runs hop by hop. Also checks that messages go to neighbours, at most one
// per lane and step, and that each send waits for exactly the receive of its block.
[[nodiscard]] Result<LinkOutcome> run(const Programs& programs, const topology::Topology& topology,
                                      std::int64_t blocks);

// Checks that every transfer of rank `me` (its first and its third block) is also in its peer's
// program, in the same step: for schedules too large to replay. Returns the number of transfers.
[[nodiscard]] Result<int> neighbours(const Algorithm& algorithm,
                                     const CollectiveParameters& parameters, std::uint32_t me);

}  // namespace espalier::replay

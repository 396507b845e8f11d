#pragma once
// Test helper: replays a schedule step by step for one N and checks all guarantees of the
// generators: ports (not of links with several lanes), matching transfers, exact `after`, slot
// reuse within the window, ordered data flow, results and claims. Host only; independent of the
// verifier.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::replay {

// The programs of all nodes. Each is checked by check_program, and for fields that must be equal in
// all.
struct Schedule {
  Group group;
  Programs programs;
  std::string error;  // empty if there is no error
};
[[nodiscard]] Schedule generate(const Algorithm& algorithm, const Group& group);

// Replays `schedule` with N = blocks. Returns an empty string if every check passed, otherwise the
// first error and its position. `steps` is set to 1 + the last step with an event.
[[nodiscard]] std::string run(const Schedule& schedule, std::int64_t blocks, std::int64_t& steps);

// Checks that every transfer of rank `me` (its first and its third block) is also in its peer's
// program, in the same step: for schedules too large to replay.
struct Neighbours {
  std::string error;  // empty if all agree
  int transfers = 0;
};
[[nodiscard]] Neighbours neighbours(const Algorithm& algorithm, const Group& group,
                                    std::uint32_t me);

}  // namespace espalier::replay

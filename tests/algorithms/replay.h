#pragma once
// Test helper: replays a schedule step by step for one N and checks everything the generators
// promise: ports (of links with several lanes nothing), matching transfers, exact `after`, slot
// reuse within the window, ordered data flow, results, claims. Host only; independent of the
// verifier.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::replay {

// The programs of all nodes, checked by check_program and for what must be the same on all.
struct Schedule {
  Group group;
  Programs programs;
  std::string error;  // empty if all is well
};
[[nodiscard]] Schedule generate(const Algorithm& algorithm, const Group& group);

// Replays `schedule` with N = blocks. Empty if every check held, else what was wrong and where.
// `steps` becomes the number of steps up to the last one that does something.
[[nodiscard]] std::string run(const Schedule& schedule, std::int64_t blocks, std::int64_t& steps);

// Whether every transfer of rank `me` (its first block, and its third) stands in its peer's program
// too, in the same step: for schedules too large to replay.
struct Neighbours {
  std::string error;  // empty if all agree
  int transfers = 0;
};
[[nodiscard]] Neighbours neighbours(const Algorithm& algorithm, const Group& group,
                                    std::uint32_t me);

}  // namespace espalier::replay

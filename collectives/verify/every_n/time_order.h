#pragma once
// The order in which the progressions of a stage run. Internal to collectives/verify.

#include <cstdint>
#include <vector>

#include "collectives/verify/every_n/progressions.h"

namespace espalier::verify {

// Sorts the progressions of each stage into the time order that RankProgressions describes, and
// sets ranks.stage_begin. Before the call Progression::turn is the number of the first instance;
// after it, the order in its step. `every`: instances per round, by action.
void sort_by_time(RankProgressions& ranks, const std::vector<std::int64_t>& every);

}  // namespace espalier::verify

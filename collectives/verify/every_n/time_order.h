#pragma once
// The order in which the progressions of a stage take place. Internal to collectives/verify.

#include <cstdint>
#include <vector>

#include "collectives/verify/every_n/progressions.h"

namespace espalier::verify {

// Puts the progressions of each stage in the time order that RankProgressions describes, and sets
// ranks.stage_begin. `turn` of a progression is the number of its first instance; it becomes the
// progression's turn. `every`: by action, its instances per round.
void sort_by_time(RankProgressions& ranks, const std::vector<std::int64_t>& every);

}  // namespace espalier::verify

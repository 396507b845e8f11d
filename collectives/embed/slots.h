#pragma once
// Cut-through placements: no link twice in a slot. Host only.

#include <cstdint>
#include <vector>

#include "collectives/embed/placement.h"

namespace espalier::embed {

// Returns the number of slots of all phases together. slots_of() returns the slot of each transfer
// among them.
[[nodiscard]] std::uint32_t count_slots(const Traffic& traffic);
[[nodiscard]] std::vector<std::uint32_t> slots_of(const Traffic& traffic);

// find_placement() for Switching::kCutThrough.
[[nodiscard]] Placement find_in_slots(const Routes& routes, const Traffic& traffic,
                                      const Search& search);

// Returns the hops until the last rank has its first block of every segment. Phases follow one
// another; within a phase, segments are independent.
[[nodiscard]] std::int64_t latency_of(const Routes& routes, const Traffic& traffic,
                                      const std::vector<std::uint32_t>& node_of);

}  // namespace espalier::embed

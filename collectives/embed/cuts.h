#pragma once
// Proofs that a narrow mesh has no cut-through placement of a schedule. Host only.

#include <cstdint>
#include <optional>

#include "collectives/embed/traffic.h"
#include "espalier/topology/topology.h"

namespace espalier::embed {

// Returns false if no placement on this mesh can exist in which no link occurs twice in a slot.
// `root`: where virtual rank 0 is; nothing: anywhere. Returns true if the cuts leave room, which
// proves nothing, and for every mesh that is not one or two rows or columns of at most 32 ranks.
[[nodiscard]] bool cuts_leave_room(const topology::Shape& mesh, const Traffic& traffic,
                                   std::optional<std::uint32_t> root);

}  // namespace espalier::embed

#pragma once
// Whether a schedule stays on the links of its topology. Host only.

#include <cstdint>
#include <optional>

#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::lower {

// A node, and a peer of its program without a link between them.
struct Stranger {
  std::uint32_t node = 0;
  std::uint32_t peer = 0;
};

// Finds the first node whose program names a peer without a topology link in any direction, or has
// a message in the direction in which a link is missing, and that peer. A peer counts even if the
// node never sends to it. Returns nothing if the schedule is hop by hop. `programs`: of the nodes
// 0, 1, ...
[[nodiscard]] std::optional<Stranger> find_stranger(const topology::Topology& topology,
                                                    const Programs& programs);

}  // namespace espalier::lower

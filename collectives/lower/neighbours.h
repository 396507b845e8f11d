#pragma once
// Whether a schedule stays on the links of its topology. Host only.

#include <cstdint>
#include <optional>

#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::lower {

// A node and a peer of its program without a link between them.
struct Stranger {
  std::uint32_t node = 0;
  std::uint32_t peer = 0;
};

// The first node whose program names a peer, whether it sends to it or not, to and from which the
// topology has no link; its first such peer. None: the schedule is modelled. `programs`: of the
// nodes 0, 1, ...
[[nodiscard]] std::optional<Stranger> find_stranger(const topology::Topology& topology,
                                                    const Programs& programs);

}  // namespace espalier::lower

#pragma once
// The cuts of a topology that limit a collective's rate most, by maximum flows. Internal to
// collectives/verify.

#include <cstdint>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// Arcs that all flows of one topology may examine. On mesh:32x32 that is 3 ms; a proof takes 70.
inline constexpr std::int64_t kMaxFlowWork = std::int64_t{1} << 20;

struct FlowCuts {
  std::vector<std::vector<bool>> insides;  // each cut: the nodes from which blocks cross, by node
  bool complete = true;                    // the last cut is the greatest for the rate
};

// Returns cuts, each with a greater rate than the one before. Any cut proves a bound, so nothing
// else relies on the flows. `by_senders`: a node passes on one message per step, as if its links
// were one of capacity 1.
[[nodiscard]] FlowCuts flow_cuts(const topology::Topology& topology, const Program& common,
                                 bool by_senders, std::int64_t work = kMaxFlowWork);

}  // namespace espalier::verify

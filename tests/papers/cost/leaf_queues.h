#pragma once
// Leaf communications on fat trees as in [DD96], with queues in the routers, simulated step
// by step for the paper's figures only. Real nodes have no queues
// (leaf_*.cc in collectives/algorithms). Host only.
//
// A message crosses one link per step. A node may send a message in the step after it received it.

#include <cstdint>
#include <vector>

namespace espalier::cost {

struct Queued {
  std::int64_t steps = 0;    // until the last leaf has received everything addressed to it
  std::int64_t longest = 0;  // maximum number of messages waiting at one port at the end of a step
};

// arities: children of a router of level 1, 2, .., h; each at least 2, h >= 1.
using Arities = std::vector<std::uint32_t>;

// One send per node and step, any number of receives.
//
// [DD96], Fig. 2: every leaf's message to all leaves. A router first sends messages that go up,
// then each message to each child in turn.
[[nodiscard]] Queued single_port_multinode_broadcast(const Arities& arities);
// [DD96], Fig. 3: one message per pair of leaves. Leaves send to the furthest destination first,
// then in order of destination. A router first sends messages that go up, then in order of arrival.
[[nodiscard]] Queued single_port_total_exchange(const Arities& arities);

// [DD96], Theorem 7: every node forwards a message to all neighbours except the one that sent it,
// on all links at once. A branch of level l carries capacities[l - 1] messages per step and
// direction.
[[nodiscard]] Queued multiport_flood(const Arities& arities,
                                     const std::vector<std::uint32_t>& capacities);

// The same for one arity at all levels.
[[nodiscard]] inline Queued single_port_multinode_broadcast(std::uint32_t arity,
                                                            std::uint32_t height) {
  return single_port_multinode_broadcast(Arities(height, arity));
}
[[nodiscard]] inline Queued single_port_total_exchange(std::uint32_t arity, std::uint32_t height) {
  return single_port_total_exchange(Arities(height, arity));
}
[[nodiscard]] inline Queued multiport_flood(std::uint32_t arity,
                                            const std::vector<std::uint32_t>& capacities) {
  return multiport_flood(Arities(capacities.size(), arity), capacities);
}

}  // namespace espalier::cost

#pragma once
// Leaf communications on k-ary fat trees as paper 002 has them, with queues in the routers: step by
// step, for its figures only. What nodes run has no queues (collectives/algorithms/leaf_*.cc). Host
// only.
//
// A message crosses one link a step; what a node receives in a step it may send in the next.

#include <cstdint>
#include <vector>

namespace espalier::cost {

struct Queued {
  std::int64_t steps = 0;    // until the last leaf has all that is meant for it
  std::int64_t longest = 0;  // most messages that waited at one port at the end of a step
};

// One send a node and step, any number of receives. arity >= 2, height >= 1.
// 002, Fig. 2: every leaf's message to all leaves; a router sends what goes up first, then each
// message to each child in turn.
[[nodiscard]] Queued single_port_multinode_broadcast(std::uint32_t arity, std::uint32_t height);
// 002, Fig. 3: a message for every pair of leaves; leaves send to the furthest first (then by
// destination), a router sends what goes up first, then in the order of arrival.
[[nodiscard]] Queued single_port_total_exchange(std::uint32_t arity, std::uint32_t height);

// 002, Theorem 7: every node passes a message on to all but where it came from, on all links at
// once; a branch of level l carries capacities[l - 1] messages a step and direction.
[[nodiscard]] Queued multiport_flood(std::uint32_t arity,
                                     const std::vector<std::uint32_t>& capacities);

}  // namespace espalier::cost

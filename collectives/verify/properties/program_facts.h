#pragma once
// Facts that follow from one program, or from one program and the topology. Internal to
// collectives/verify.

#include <cstdint>

#include "espalier/collectives/schedule/program.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// Returns the smallest N >= blocks that the residue allows.
[[nodiscard]] std::int64_t next_blocks(const Program& program, std::int64_t blocks);
// Whether the block table cuts any message into more blocks than the minimum. Otherwise only one N
// occurs.
[[nodiscard]] bool cuts_messages(const Program& program);
// Whether combines are allowed: the collective has an operator, or it is a barrier, where a combine
// is the union of the ranks that have been heard from.
[[nodiscard]] bool has_operator(Collective collective);
// Whether the topology has no link for a message from one node to the other although routers have
// programs. A link may be one-way: then the peer is a neighbour, and no message goes against it.
[[nodiscard]] bool is_absent_link(const topology::Topology& topology, const Program& program,
                                  std::uint32_t from, std::uint32_t to);
// Whether every message of the program goes over a link of the topology, in its direction.
[[nodiscard]] bool only_neighbours(const topology::Topology& topology, const Program& program);
// Adds what one node's program says to the facts of its schedule. `facts.links` stays as it is.
void add_facts(const topology::Topology& topology, const Program& program, BoundFacts& facts);

// The postal model's S and L, in steps; 1 and 1 elsewhere.
[[nodiscard]] inline std::int64_t send_ticks(const Program& program) {
  return program.send_ticks == 0 ? 1 : program.send_ticks;
}
[[nodiscard]] inline std::int64_t latency_ticks(const Program& program) {
  return program.latency_ticks == 0 ? 1 : program.latency_ticks;
}

// Whether routers have programs too: then all peers are neighbours (rule 12).
[[nodiscard]] inline bool is_hop_by_hop(const Program& program) {
  return program_nodes(program) > program.ranks;
}
// Returns the maximum of messages per step from one node to another: the lanes of their link; 1 if
// the fabric routes between them.
[[nodiscard]] inline std::uint32_t lanes_of(const topology::Topology& topology, std::uint32_t from,
                                            std::uint32_t to) {
  const std::uint32_t lanes = topology.capacity(from, to);
  return lanes == 0 ? 1 : lanes;
}

}  // namespace espalier::verify

#pragma once
// A schedule written out as streams of blocks between ranks, and the programs made of it: what all
// searched trees end in. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/algorithms/build/builder.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::searched {

// Blocks first, first + every, first + 2*every, .. of a segment from one rank to another, one a
// period; the first in step `step`.
struct Stream {
  std::uint32_t from = 0, to = 0;
  std::uint32_t segment = 0;
  std::uint32_t first = 0;
  std::uint32_t step = 0;
};

// Why a search cannot be of this group on this topology: ranks that are not the topology's, a root
// that is none of them. Empty if it can.
[[nodiscard]] std::string wrong_group(const topology::Topology& topology, const Group& group);

// A broadcast: every rank but the root receives every block of every segment once, over one stream
// for each (segment, first), and sends what it has received.
struct Broadcast {
  Outline outline;
  std::uint32_t period = 1;
  std::uint32_t every = 1;  // blocks a period; first < every
  Count steps{};
  bool whole_runs = false;  // N is rounded up to a multiple of `every`
  std::vector<Stream> streams;
};

// The programs of all ranks, as Search returns them (searched.h).
[[nodiscard]] std::string write_broadcast(const Group& group, const Broadcast& broadcast,
                                          Programs& programs);
// The same reversed in time: a commuting reduce of as many steps. Only for `every` = 1.
[[nodiscard]] std::string write_reduce(const Group& group, const Broadcast& reversed,
                                       Programs& programs);

}  // namespace espalier::searched

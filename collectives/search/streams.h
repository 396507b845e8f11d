#pragma once
// A schedule as streams of blocks between ranks, and the programs made from it. All searched trees
// are written this way. Host only.

#include <cstdint>
#include <vector>

#include "collectives/build/builder.h"
#include "espalier/base/result.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::searched {

// Blocks first, first + every, first + 2*every, ... of a segment from one rank to another, one per
// period. The first one is sent in step `step`.
struct Stream {
  std::uint32_t from = 0, to = 0;
  std::uint32_t segment = 0;
  std::uint32_t first = 0;
  std::uint32_t step = 0;
};

// Checks that a search can serve these parameters on this topology. Errors: the two differ in
// the number of ranks, or the root is not a rank.
[[nodiscard]] Result<void> check_parameters(const topology::Topology& topology,
                                            const CollectiveParameters& parameters);

// Returns the program of a node without others.
[[nodiscard]] Result<Programs> write_alone(const CollectiveParameters& parameters,
                                           const Outline& outline);

// A broadcast. Every rank except the root receives every block of every segment once, over one
// stream per (segment, first), and sends blocks that it has received.
struct Broadcast {
  Outline outline;
  std::uint32_t period = 1;
  std::uint32_t every = 1;  // blocks per period; first < every
  Count steps{};
  bool whole_runs = false;  // N is rounded up to a multiple of `every`
  std::vector<Stream> streams = {};
};

// Returns the programs of all ranks. Error: a program's tables are too small.
[[nodiscard]] Result<Programs> write_broadcast(const CollectiveParameters& parameters,
                                               const Broadcast& broadcast);
// Returns the reverse in time: a reduce with the same number of steps, for commutative operators.
// Block j of a run of `every` blocks becomes block every - 1 - j. If whole_runs is false: a last
// run of fewer than `every` blocks must also follow `reversed.steps`.
[[nodiscard]] Result<Programs> write_reduce(const CollectiveParameters& parameters,
                                            const Broadcast& reversed);

}  // namespace espalier::searched

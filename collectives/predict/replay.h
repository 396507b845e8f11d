#pragma once
// Replays a schedule against a model: the rules of a machine (docs/architecture.md, "The rules of a
// program") and of the simulated network (hal/sim/network.h), without machines and data, in integer
// picoseconds. In addition it knows what the simulated network does not: classes of links, o,
// gamma, and ranks that share processors. Host only.

#include <cstdint>
#include <optional>

#include "collectives/predict/model.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/base/switching.h"
#include "espalier/topology/topology.h"

namespace espalier::predict {

// What a prediction assumes about the run.
struct Conditions {
  Switching switching = Switching::kCutThrough;
  Operator op;                       // of a reduction or scan
  std::uint64_t eager_bytes = 4096;  // longer messages wait for their receive
  // Ranks that share a host's processors: successive ones. 0: as the topology says, R of hosts:HxR
  // and one of any other.
  std::uint32_t ranks_on_host = 0;
  std::uint64_t max_instances = 1 << 20;  // of actions; a longer replay is not made
};

// Returns the time from the start, of all nodes at once, to the end of the last node. Nothing if
// the programs have more instances for `layout` than conditions.max_instances. Requires a schedule
// that verifies.
[[nodiscard]] std::optional<Picoseconds> replay(const topology::Topology& topology,
                                                const Programs& programs, const Layout& layout,
                                                const Model& model, const Conditions& conditions);

// conditions.ranks_on_host, or what the topology says.
[[nodiscard]] std::uint32_t ranks_on_host(const topology::Topology& topology,
                                          const Conditions& conditions);

// Upper limit of the instances of all programs for N = `blocks`.
[[nodiscard]] std::uint64_t instances(const Programs& programs, std::int64_t blocks);

}  // namespace espalier::predict

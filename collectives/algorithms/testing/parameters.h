#pragma once
// The parameters of collectives on a topology, for tests.

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/topology/topology.h"

namespace espalier {

// Blocks of 64 bytes, so that short messages have several.
constexpr BlockRule kSmallBlocks = {0, 64};

// rule: the only row of the block table, which must outlive the parameters; null: the default
// table.
inline CollectiveParameters topology_parameters(const topology::Topology& topology,
                                                std::uint32_t root = 0,
                                                const BlockRule* rule = nullptr) {
  return CollectiveParameters{.ranks = topology.ranks(),
                              .root = root,
                              .topology_digest = topology.digest(),
                              .blocks = rule,
                              .blocks_count = rule == nullptr ? 0u : 1u};
}

}  // namespace espalier

#pragma once
// Schedules of one block on a simulated network that is the postal model, with or without links
// that messages share. Host only.

#include <cstdint>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"
#include "tools/measure/postal.h"

namespace espalier::papers {

// Times are in the unit of the caller: steps, or milliseconds.
struct PostalNetwork {
  double send = 1;     // t_0: a message holds the sender's port, and each link of its route
  double latency = 0;  // from then until it has arrived: (lambda - 1) t_0
  // Null: no two messages share a link.
  const topology::Topology* links = nullptr;
  std::uint32_t lanes = 1;  // messages that a link carries at once
};

// The time until the last node has ended, in an asynchronous run.
[[nodiscard]] double simulated_time(const Programs& programs, const PostalNetwork& network);

// All ranks' programs of the algorithm; node_of: the node of each rank, empty: the rank's number.
[[nodiscard]] Programs placed_programs(Collective collective, const char* algorithm,
                                       const CollectiveParameters& parameters,
                                       const std::vector<std::uint32_t>& node_of = {});

// lambda and t_0 by the two experiments of section 2.2 with 1, 2, 4 and 8 receivers, as
// `espalier measure` fits them. Their unit is seconds, of which one is 1000 units of `network`.
[[nodiscard]] tools::Postal measured_postal(const PostalNetwork& network);

// t_0 as a sender sees it, by the second experiment with 1 and 8 receivers, if no node has more
// than `window` steps in flight.
[[nodiscard]] double measured_send(const PostalNetwork& network, std::uint32_t window);

}  // namespace espalier::papers

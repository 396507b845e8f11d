#pragma once
// How fast the cables of a job are, measured by short transfers between the hosts at their ends.
// Host only.

#include <cstdint>
#include <vector>

#include "base/network/filter.h"
#include "bootstrap/cables/job_graph.h"
#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::cables {

// Two hosts with cables between them, and the turn in which they measure.
struct MeasuredPair {
  std::uint32_t a = 0, b = 0;            // places in JobGraph::hosts, a < b
  std::vector<std::size_t> cables = {};  // places in JobGraph::cables
  std::uint32_t turn = 0;                // from 0
};
// Deals the pairs of hosts out over turns, so that no host is in two pairs of a turn: at most twice
// as many turns as a host has neighbours, less one. All ranks compute the same.
[[nodiscard]] std::vector<MeasuredPair> measured_pairs(const JobGraph& graph);

// Measures all cables: both directions at once, at most 1 MiB or 50 ms each, and disjoint pairs of
// hosts at the same time. Sets JobCable::rate_mbits to the slower direction's rate, at least 1; a
// cable that carried nothing within 0.5 s keeps its rate. Takes a fence per turn, and two more. All
// ranks of the job must call it, and get the same rates. `ports`: at which to listen.
// Errors: those of `members`; no port to listen at.
[[nodiscard]] Result<void> measure_rates(bootstrap::Bootstrap& members,
                                         const network::PortRange& ports, JobGraph& graph);

}  // namespace espalier::cables

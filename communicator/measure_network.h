#pragma once
// What messages between the ranks of a communicator cost. Host only.

#include <cstdint>
#include <string>

#include "communicator/cables/rank_graph.h"
#include "communicator/schedules.h"
#include "espalier/base/result.h"
#include "espalier/communicator.h"

namespace espalier::communicator {

// Above this number of ranks nothing is measured.
inline constexpr std::uint32_t kMaxMeasuredRanks = 1024;

// Measures with gathers for which 32 KiB cross the first host's link, with allgathers for which 32
// KiB and 128 KiB cross each host's link, each after a pause, and with barriers, which take a known
// number of steps between hosts. Each host sends about 500 KiB.
// `ranks_per_host`: R, if each host has R successive ranks, whose communicator measures with
// schedules of hosts:HxR; otherwise 1. `host`: JoinOptions::host; hosts with names are machines of
// their own, others if their kernels were booted at different times. Every rank calls it, and gets
// the same: the costs of the slowest rank, rounded to four values per octave, so that one model,
// and the choices that the host keeps for it, serve from job to job. Errors: a rank died.
[[nodiscard]] Result<NetworkCost> measure_network(Communicator& communicator,
                                                  std::uint32_t ranks_per_host,
                                                  const std::string& host);

// Measures what a message over the cables costs, with barriers, which take a known number of steps.
// The rates are those of the graph. Every rank calls it, and gets the same. `host`: as above.
// Errors: a rank died.
[[nodiscard]] Result<NetworkCost> measure_cables(Communicator& communicator, const RankGraph& graph,
                                                 const std::string& host);

// The burst of a token bucket: how many of `bytes` passed sooner than at the rate of long messages,
// if they are more than an eighth; otherwise 0. `ns`: the time of a gather of them, at its root: by
// one clock. Returns 7/8 of the estimate: `byte_fs` was measured with all ranks active, so it is
// too high. Four values per octave.
[[nodiscard]] std::uint64_t burst_of(std::uint64_t byte_fs, std::uint64_t bytes, std::uint64_t ns);

}  // namespace espalier::communicator

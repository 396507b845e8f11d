#pragma once
// What messages between the ranks of a communicator cost. Host only.

#include <cstdint>

#include "communicator/schedules.h"
#include "espalier/base/result.h"
#include "espalier/communicator.h"

namespace espalier::communicator {

// Above this number of ranks nothing is measured.
inline constexpr std::uint32_t kMaxMeasuredRanks = 1024;

// Measures with allgathers for which 32 and 128 KiB cross each host's link, and with barriers,
// which take a known number of steps between hosts. Each host sends about 320 KiB.
// `ranks_per_host`: R, if each host has R successive ranks, whose communicator measures with
// schedules of hosts:HxR; otherwise 1. Every rank calls it, and gets the same: the costs of the
// slowest rank, rounded to four values per octave, so that one model, and the choices that the host
// keeps for it, serve from job to job. Errors: a rank died.
[[nodiscard]] Result<NetworkCost> measure_network(Communicator& communicator,
                                                  std::uint32_t ranks_per_host);

}  // namespace espalier::communicator

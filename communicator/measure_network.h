#pragma once
// What messages between the ranks of a communicator cost. Host only.

#include <cstdint>

#include "communicator/schedules.h"
#include "espalier/base/result.h"
#include "espalier/communicator.h"

namespace espalier::communicator {

// Above this number of ranks nothing is measured.
inline constexpr std::uint32_t kMaxMeasuredRanks = 1024;

// Measures with allgathers of 32 and 128 KiB in all, and with barriers, which take the same number
// of steps. Each rank sends about 320 KiB. Every rank calls it, and gets the same: the costs of the
// slowest rank, rounded to four values per octave, so that one model, and the choices that the host
// keeps for it, serve from job to job. Errors: a rank died.
[[nodiscard]] Result<NetworkCost> measure_network(Communicator& communicator);

}  // namespace espalier::communicator

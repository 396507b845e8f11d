#pragma once
// The wait cycle of a schedule that deadlocks: ranks that wait for each other.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

// Returns one cycle of ranks that wait for each other when the schedule runs with N = `blocks` and
// every send waits for its receive (rendezvous). Each line is one wait, on an event that the next
// line's wait delays; the last line's event is delayed by the first line's wait. An example: "rank
// 0 waits in step 0 for rank 1 to receive block 0 of segment 0, which rank 1 does in step 4, once
// its step 0 is over (window 4)". Only rules 2 to 6 count: send k of a link matches receive k, even
// if they carry different blocks. Empty if all ranks finish, if they wait only for messages that no
// rank sends, or if there are more than a few million instances.
[[nodiscard]] std::vector<std::string> wait_cycle(const topology::Topology& topology,
                                                  const Programs& programs, std::int64_t blocks);

}  // namespace espalier::verify

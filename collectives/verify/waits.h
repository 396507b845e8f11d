#pragma once
// Who waits for whom: the wait cycle that a schedule's ranks end in, if they do.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

// One cycle of ranks that wait for each other when the schedule runs with `blocks` = N and every
// send waits for its receive (rendezvous): a line for each wait, the last for what the first keeps
// from happening ("rank 0 waits in step 0 for rank 1 to receive block 0 of segment 0, which rank 1
// does in step 4, once its step 0 is over (window 4)"). By rules 2 to 6 alone; the k-th message
// sent over a link meets the k-th awaited, whatever they carry. Empty: the ranks come to an end, or
// only wait for messages that nobody sends; or there are more than a few million instances.
[[nodiscard]] std::vector<std::string> wait_cycle(const topology::Topology& topology,
                                                  const Programs& programs, std::int64_t blocks);

}  // namespace espalier::verify

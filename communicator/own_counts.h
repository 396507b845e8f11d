#pragma once
// Scatter, gather and all-to-all with a count for each rank, of which each rank knows only its own,
// as MPI's v-variants have it. No exchange of counts comes before: the schedule has only direct
// messages. Host only.

#include "espalier/base/result.h"
#include "espalier/communicator.h"

namespace espalier::communicator {

class OwnCounts {
 public:
  // As Communicator::start(). call.counts has the entries that this rank knows, and otherwise 0.
  // Scatter, gather: of this rank's part; at the root of all parts. All-to-all: of what it sends
  // and what it receives. Errors also: two ranks that know different counts, as a mismatch.
  // `has_own`: false for Communicator::start() itself.
  [[nodiscard]] static Result<Request> start(Communicator& communicator, const Call& call,
                                             bool has_own = true);
};

}  // namespace espalier::communicator

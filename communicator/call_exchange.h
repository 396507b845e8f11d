#pragma once
// After a mismatch: the ranks at both ends of the link name their calls to each other, and to all
// ranks that have a link to them. Host only.
//
// The machines have ended, so endpoints carry only controls. Requests and replies are controls of
// kind kAnswer, whose numbers a machine ignores: a rank whose machine has not ended takes no harm.
// Controls may replace each other, so requests repeat until their reply comes.

#include <cstdint>

#include "espalier/hal/endpoint.h"

namespace espalier::communicator {

// The words of the calls (call_word.h) at both ends of a mismatch; 0: not known.
struct MismatchedCalls {
  std::uint64_t detector = 0, peer = 0;
};

// Returns the calls of the cause's two nodes, as far as they tell theirs within `within_ns`. The
// two nodes stay until all nodes with a link to them have asked, but no longer. `own`: this node's
// word. Requires an endpoint that is released.
[[nodiscard]] MismatchedCalls exchange_calls(Endpoint& endpoint, const Cause& cause,
                                             std::uint64_t own, std::uint64_t within_ns);

}  // namespace espalier::communicator

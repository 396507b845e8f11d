#pragma once
// The state of an endpoint link: which lanes it has, and which lane has its next message.

#include <cstdint>

#include "espalier/internal/base/assert.h"

namespace espalier::ofi {

// One direction of a link. Messages are assigned to the link's lanes round robin, so both ends know
// which lane carries which message without exchanging anything.
struct LinkDirection {
  std::uint32_t lanes = 1;
  std::uint32_t outstanding = 0;  // messages posted and not reported
  std::uint32_t post_lane = 0;    // carries the next message to be posted; counts from the link's
                                  // first lane
  std::uint32_t report_lane = 0;  // carries the next message to be reported

  // Asserts that the lanes take turns: the message to report was posted `outstanding` ago.
  void check_invariants() const {
    ESPALIER_ASSERT(post_lane < lanes && report_lane < lanes);
    ESPALIER_ASSERT((report_lane + outstanding) % lanes == post_lane);
  }
  void count_posted() {
    ESPALIER_ASSERT(lanes > 0);
    ++outstanding;
    if (++post_lane == lanes) post_lane = 0;
    check_invariants();
  }
  void count_reported() {
    ESPALIER_ASSERT(outstanding > 0);
    --outstanding;
    if (++report_lane == lanes) report_lane = 0;
    check_invariants();
  }
};

struct LinkState {
  std::uint32_t first_lane = 0;
  LinkDirection out;
  LinkDirection in;
};

}  // namespace espalier::ofi

#pragma once
// The state of an endpoint link: which lanes it has, and which lane has its next message.

#include <cstdint>

namespace espalier::ofi {

// One direction of a link. Messages are assigned to the link's lanes round robin, so both ends know
// which lane carries which message without exchanging anything.
struct LinkDirection {
  std::uint32_t lanes = 1;
  std::uint32_t outstanding = 0;  // messages posted and not reported
  std::uint32_t post_lane = 0;    // carries the next message to be posted; counts from the link's
                                  // first lane
  std::uint32_t report_lane = 0;  // carries the next message to be reported

  void count_posted() {
    ++outstanding;
    if (++post_lane == lanes) post_lane = 0;
  }
  void count_reported() {
    --outstanding;
    if (++report_lane == lanes) report_lane = 0;
  }
};

struct LinkState {
  std::uint32_t first_lane = 0;
  LinkDirection out;
  LinkDirection in;
};

}  // namespace espalier::ofi

#pragma once
// The postal model ([Bruck96], section 2; Bar-Noy and Kipnis 1992), in ticks. A send holds its port
// for `send` ticks, and its data can be used `latency` ticks after the send began.
// lambda = latency / send. Freestanding; memory does not grow with the group.

#include <cstdint>

#include "espalier/collectives/schedule/program.h"
#include "espalier/internal/base/assert.h"

namespace espalier {

// N_lambda(t): the number of ranks that one rank can reach in t ticks, itself included.
// N(t) = N(t - send) + N(t - latency); N(t) = 1 for 0 <= t < latency, and 0 for t < 0. The object
// holds the values around one t and moves it up and down, because the recurrence can be evaluated
// in both directions. This takes O(latency) memory and no table.
class Reach {
 public:
  // Begins at t = 0. Requires 1 <= send <= latency <= kMaxTicks.
  Reach(std::uint32_t send, std::uint32_t latency) : send_(send), latency_(latency) {
    ESPALIER_ASSERT(1 <= send && send <= latency && latency <= kMaxTicks);
    values_[0] = 1;
  }

  [[nodiscard]] std::uint32_t ticks() const { return ticks_; }
  // N(t - back), 0 <= back <= latency.
  [[nodiscard]] std::uint32_t value(std::uint32_t back) const {
    ESPALIER_ASSERT(back <= latency_);
    return ticks_ < back ? 0 : values_[(ticks_ - back) % kRow];
  }
  // Increases t to the least t with N(t) >= ranks, which is T_lambda(ranks). ranks <= 2^30.
  void up_to(std::uint32_t ranks) {
    while (value(0) < ranks) {
      ++ticks_;
      values_[ticks_ % kRow] = ticks_ < latency_ ? 1 : value(send_) + value(latency_);
    }
  }
  // Decreases t by `by`.
  void down(std::uint32_t by) {
    for (; by > 0; --by, --ticks_) {
      // The value that enters the window: N(t - 1 - latency) = N(t - 1) - N(t - 1 - send).
      if (ticks_ < latency_ + 1) continue;
      values_[(ticks_ - 1 - latency_) % kRow] =
          send_ == latency_ ? value(1) / 2 : value(1) - value(1 + send_);
    }
  }

 private:
  static constexpr std::uint32_t kRow = kMaxTicks + 2;

  std::uint32_t send_, latency_, ticks_ = 0;
  std::uint32_t values_[kRow] = {};
};

// T_lambda(ranks) in ticks.
[[nodiscard]] inline std::uint32_t postal_ticks(std::uint32_t ranks, std::uint32_t send,
                                                std::uint32_t latency) {
  Reach reach(send, latency);
  reach.up_to(ranks);
  return reach.ticks();
}

}  // namespace espalier

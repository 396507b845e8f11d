#pragma once
// The postal model's numbers (004 section 2; Bar-Noy and Kipnis 1992), in ticks: a send holds its
// port `send` ticks and what it sends can be used `latency` ticks after it began; lambda = latency
// / send. Freestanding, without memory of the size of the group.

#include <cstdint>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

// N_lambda(t), how many ranks one can reach in t ticks, itself included:
// N(t) = N(t - send) + N(t - latency), 1 for 0 <= t < latency, 0 before. Held at one t and moved up
// and down from there, for the recurrence runs both ways: O(latency) memory and no table.
class Reach {
 public:
  // At t = 0. 1 <= send <= latency <= kMaxTicks.
  Reach(std::uint32_t send, std::uint32_t latency) : send_(send), latency_(latency) {
    values_[0] = 1;
  }

  [[nodiscard]] std::uint32_t ticks() const { return ticks_; }
  // N(t - back), 0 <= back <= latency.
  [[nodiscard]] std::uint32_t value(std::uint32_t back) const {
    return ticks_ < back ? 0 : values_[(ticks_ - back) % kRow];
  }
  // To the least t with N(t) >= ranks, T_lambda(ranks); from below. ranks <= 2^30.
  void up_to(std::uint32_t ranks) {
    while (value(0) < ranks) {
      ++ticks_;
      values_[ticks_ % kRow] = ticks_ < latency_ ? 1 : value(send_) + value(latency_);
    }
  }
  // To t - by.
  void down(std::uint32_t by) {
    for (; by > 0; --by, --ticks_) {
      // What falls into reach again: N(t - 1 - latency) = N(t - 1) - N(t - 1 - send).
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

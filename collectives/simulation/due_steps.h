#pragma once
// Lock step: the nodes that must be polled in a step; the others are skipped. Host only.

#include <cstdint>
#include <vector>

#include "espalier/internal/base/assert.h"
#include "hal/sim/monotone_queue.h"

namespace espalier::sim {

class DueSteps {
 public:
  // Schedules a poll of the node at the beginning of `step`, which is after the last step taken.
  void add(std::uint32_t node, std::int64_t step) {
    ESPALIER_ASSERT(step >= 0 && step > taken_);
    if (node >= last_.size()) last_.resize(node + std::size_t{1}, -1);
    if (last_[node] == step) return;
    last_[node] = step;
    queue_.push(static_cast<std::uint64_t>(step), node);
  }

  // Adds the nodes that are due up to `step` to `nodes`.
  void take(std::int64_t step, std::vector<std::uint32_t>& nodes) {
    ESPALIER_ASSERT(step >= taken_);
    taken_ = step;
    while (!queue_.empty() && queue_.least() <= static_cast<std::uint64_t>(step)) {
      nodes.push_back(queue_.pop());
    }
  }

 private:
  MonotoneQueue<std::uint32_t> queue_;  // nodes by step
  std::vector<std::int64_t> last_;      // by node: the last step for which it was added
  std::int64_t taken_ = -1;             // the last step taken
};

}  // namespace espalier::sim

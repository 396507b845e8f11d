#pragma once
// Lock step: which nodes have something to do in a step, so that the others are not asked. Host
// only.

#include <cstdint>
#include <vector>

#include "hal/sim/monotone_queue.h"

namespace espalier::sim {

class DueSteps {
 public:
  // The node is to be polled at the beginning of `step`, which is after the last one taken.
  void add(std::uint32_t node, std::int64_t step) {
    if (node >= last_.size()) last_.resize(node + std::size_t{1}, -1);
    if (last_[node] == step) return;
    last_[node] = step;
    queue_.push(static_cast<std::uint64_t>(step), node);
  }

  // Adds the nodes that are due up to `step` to `nodes`.
  void take(std::int64_t step, std::vector<std::uint32_t>& nodes) {
    while (!queue_.empty() && queue_.least() <= static_cast<std::uint64_t>(step)) {
      nodes.push_back(queue_.pop());
    }
  }

 private:
  MonotoneQueue<std::uint32_t> queue_;  // nodes by step
  std::vector<std::int64_t> last_;      // by node: the step it was added for last
};

}  // namespace espalier::sim

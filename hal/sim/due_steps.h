#pragma once
// Lock step: which nodes have something to do in a step, so that the others are not asked. Host
// only.

#include <algorithm>
#include <bit>
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

  // The nodes, of `nodes` in all, that are due up to `step`: ascending, each once. Valid until the
  // next call.
  const std::vector<std::uint32_t>& take(std::int64_t step, std::uint32_t nodes) {
    due_.clear();
    while (!queue_.empty() && queue_.least() <= static_cast<std::uint64_t>(step)) {
      due_.push_back(queue_.pop());
    }
    if (due_.size() > nodes / 64) {
      sort_by_marks(nodes);
    } else {
      std::sort(due_.begin(), due_.end());
      due_.erase(std::unique(due_.begin(), due_.end()), due_.end());
    }
    return due_;
  }

 private:
  // Where many are due: a bit per node is faster than sorting.
  void sort_by_marks(std::uint32_t nodes) {
    marks_.assign(nodes / 64 + 1, 0);
    for (const std::uint32_t node : due_) marks_[node / 64] |= std::uint64_t{1} << node % 64;
    due_.clear();
    for (std::uint32_t word = 0; word < marks_.size(); ++word) {
      for (std::uint64_t rest = marks_[word]; rest != 0; rest &= rest - 1) {
        due_.push_back(64 * word + static_cast<std::uint32_t>(std::countr_zero(rest)));
      }
    }
  }

  MonotoneQueue<std::uint32_t> queue_;  // nodes by step
  std::vector<std::int64_t> last_;      // by node: the step it was added for last
  std::vector<std::uint32_t> due_;
  std::vector<std::uint64_t> marks_;
};

}  // namespace espalier::sim

#pragma once
// The minimum over one deadline per node. Host only.
//
// Deadlines are set at every poll and almost never reached: they are seconds ahead, and a block
// takes microseconds. Therefore set() is cheap, and only least() searches. Each group of 64 entries
// has a bound that is at most the minimum of the group. set() lowers the bound if an entry
// decreases; least() raises it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "espalier/internal/base/assert.h"

namespace espalier::sim {

class Deadlines {
 public:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  explicit Deadlines(std::size_t nodes) {
    do {
      levels_.emplace_back(nodes, kNone);
      nodes = (nodes + kFan - 1) / kFan;
    } while (levels_.back().size() > 1);
    if (levels_[0].empty()) levels_[0].push_back(kNone);
  }

  void set(std::size_t node, std::uint64_t value) {
    ESPALIER_ASSERT(node < levels_[0].size());
    levels_[0][node] = value;
    for (std::size_t level = 1; level < levels_.size(); ++level) {
      node /= kFan;
      if (levels_[level][node] <= value) return;
      levels_[level][node] = value;
    }
    ESPALIER_ASSERT(bound() <= value);
  }
  // A lower bound of the least deadline.
  [[nodiscard]] std::uint64_t bound() const { return levels_.back()[0]; }
  // The lowest-numbered node with the least deadline.
  struct Least {
    std::uint64_t value = kNone;
    std::uint32_t node = 0;
  };
  [[nodiscard]] Least least() {
    for (;;) {
      // Descends to a node, always to the least bound. If a bound on the path was too low, it is
      // raised and the search restarts.
      std::size_t level = levels_.size() - 1, entry = 0;
      while (level > 0) {
        const std::uint64_t bound = levels_[level][entry];
        const auto first = levels_[level - 1].begin() + static_cast<std::ptrdiff_t>(entry * kFan);
        const auto last =
            levels_[level - 1].begin() +
            static_cast<std::ptrdiff_t>(std::min((entry + 1) * kFan, levels_[level - 1].size()));
        ESPALIER_ASSERT(first < last);
        const auto found = std::min_element(first, last);
        ESPALIER_ASSERT(bound <= *found);
        levels_[level][entry] = *found;
        if (*found != bound) break;
        --level;
        entry = static_cast<std::size_t>(found - levels_[level].begin());
      }
      ESPALIER_ASSERT(level > 0 || levels_[0][entry] == bound());
      if (level == 0) return {levels_[0][entry], static_cast<std::uint32_t>(entry)};
    }
  }

 private:
  static constexpr std::size_t kFan = 64;
  // The nodes, then the bounds; the last level has one.
  std::vector<std::vector<std::uint64_t>> levels_;
};

}  // namespace espalier::sim

#pragma once
// Sorts a list of nodes and removes duplicates. Host only.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace espalier::sim {

class NodeOrder {
 public:
  // `list`: nodes < `nodes`. Takes O(nodes / 64 + entries) time for a long list, and at most the
  // time of sorting for a short one.
  void sort(std::vector<std::uint32_t>& list, std::uint32_t nodes) {
    if (list.size() <= nodes / 64) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      return;
    }
    marks_.assign(nodes / 64 + 1, 0);
    for (const std::uint32_t node : list) marks_[node / 64] |= std::uint64_t{1} << node % 64;
    list.clear();
    for (std::uint32_t word = 0; word < marks_.size(); ++word) {
      for (std::uint64_t rest = marks_[word]; rest != 0; rest &= rest - 1) {
        list.push_back(64 * word + static_cast<std::uint32_t>(std::countr_zero(rest)));
      }
    }
  }

 private:
  std::vector<std::uint64_t> marks_;  // a bit per node
};

}  // namespace espalier::sim

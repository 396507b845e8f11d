#pragma once
// Double Fibonacci trees: two trees of one skewed shape, with full bandwidth and less latency than
// two_trees.h. [SST09] mentions T. Kieritz's trees and gives no construction; this one was found by
// search. Host only.

#include <cstdint>
#include <vector>

namespace espalier::searched {

// n ranks (the paper's PEs), 1 .. n; the source is outside the trees. A node reached at time t (of
// its shape) reaches its fast child at t+1 and its slow child at t+2. The second tree runs one step
// behind the first.
struct DoubleFibonacci {
  struct TreeNode {
    std::uint32_t pe = 0;
    std::uint32_t parent = 0;  // number of a rank; 0: the source
    std::uint32_t step = 0;    // in which this rank gets its first block
  };
  std::vector<TreeNode> trees[2];
  std::uint32_t latency = 0;  // D: N blocks in both halves together take D-1+N steps
};

// Requires n >= 1. D is the least that the balance of the shape allows.
[[nodiscard]] DoubleFibonacci double_fibonacci(std::uint32_t n);

}  // namespace espalier::searched

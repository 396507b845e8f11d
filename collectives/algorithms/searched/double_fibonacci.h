#pragma once
// Double Fibonacci trees: two trees of one skewed shape, for full bandwidth with less latency than
// two_trees.h. 001 (Sanders, Speck, Traff) names T. Kieritz's and gives no construction; this one
// was found by search. Host only.

#include <cstdint>
#include <vector>

namespace espalier::searched {

// n PEs, 1 .. n, the source outside. A node reached at time t (of its shape) reaches its fast child
// at t+1 and its slow one at t+2; the second tree runs one step behind the first.
struct DoubleFibonacci {
  struct Node {
    std::uint32_t pe = 0;
    std::uint32_t parent = 0;  // PE; 0: the source
    std::uint32_t step = 0;    // in which it gets its first block
  };
  std::vector<Node> trees[2];
  std::uint32_t latency = 0;  // D: N blocks in all take D-1+N steps
};

// n >= 1. D is the least that the balance of the shape allows.
[[nodiscard]] DoubleFibonacci double_fibonacci(std::uint32_t n);

}  // namespace espalier::searched

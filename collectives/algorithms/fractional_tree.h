#pragma once
// Where a rank sits in a fractional tree (000, Sanders and Sibeyn, section 3 and Fig. 1).
// Freestanding.
//
// A node of a binary tree is replaced by a group of r PUs, a chain: its head is fed, each PU hands
// every block on, the last one to the head of the down successor; PU i also hands block i of every
// run of r to the head of the right successor. Heads of down and right successors are reached r and
// r+1 steps after the own head, so that P_i = r + P_{i-r} + P_{i-r-1} PUs (P_i = i+1 for i <= r)
// are reached in i steps.
//
// The head of the whole tree is PU 0 and the source; a subtree's PUs are consecutive: its first
// group from the head on, then what is below the down successor, then what is below the right one.

#include <cstdint>

#include "collectives/algorithms/algorithms.h"

namespace espalier {

// The longest runs whose reduce fits a program's tables (3r+2 actions).
inline constexpr std::uint32_t kMaxRun = 20;

// r: the group's, else the default for that many ranks: the integer next to (k/(d't))^(1/3), d' =
// max(1, ceil(log2 ranks) - 1), the rule of 000 (Performance Analysis) at its example k = 4096 t,
// at most kMaxRun.
[[nodiscard]] std::uint32_t fractional_run(const Group& group);

class FractionalTree {
 public:
  // 1 <= run <= kMaxRun, 1 <= ranks <= kMaxRanks (builder.h). O(depth) time.
  FractionalTree(std::uint32_t ranks, std::uint32_t run);

  // d = min{i : P_i >= ranks} - 1, the step in which the last PU gets its first block; -1 if there
  // is no PU but the source.
  [[nodiscard]] std::int32_t last_arrival() const { return depth_ - 1; }
  [[nodiscard]] std::uint32_t run() const { return run_; }
  // Steps from a run to the next: r+1, but with two PUs nobody sends to the right, there is no
  // pause, and the run is 1 whatever was asked for.
  [[nodiscard]] std::uint32_t period() const { return period_; }
  // Steps for N blocks: d + N + ceil(N/r) - 1 (N for two PUs).
  [[nodiscard]] Count steps() const;

  struct Seat {
    std::uint32_t head = 0;        // of the own group
    std::uint32_t position = 0;    // i: the PU is head + i
    std::int32_t arrival = -1;     // step in which the PU gets block 0; -1 for the source
    std::uint32_t from_group = 0;  // head of the group that feeds the own head (if there is one)
    bool is_right = false;         // the own group is that one's right successor
    std::uint32_t down = 0;   // whom the PU hands every block to: the next of the group, or the
                              // head of the down successor; 0: nobody
    std::uint32_t right = 0;  // head of the group's right successor; 0: there is none
  };
  // pu < ranks. O(depth) time.
  [[nodiscard]] Seat seat(std::uint32_t pu) const;

 private:
  // P_{i-r-1} .. P_i, P_k at position k mod (r+2); those with k < 0 are 0.
  struct Reach {
    std::uint64_t values[kMaxRun + 2];
    std::int32_t at;  // i
  };
  [[nodiscard]] std::uint64_t reach(const Reach& all, std::int32_t index) const;
  void back(Reach& all, std::uint32_t steps) const;

  std::uint32_t ranks_, run_, period_;
  std::int32_t depth_;  // min{i : P_i >= ranks}
  Reach reach_;
};

}  // namespace espalier

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

#include <algorithm>
#include <cstdint>

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier {

// The longest runs that the tables of a program have room for (proto/schedule.options). A PU of a
// broadcast has 2r+1 actions and 2r+3 indices (r blocks, r+2 links, a segment); of a reduce 3r+2
// and 3r+4. With simplex ports each action begins in a step of its own: 2r+4 counts, with N, the
// steps and the bound.
struct ProgramRoom {
  std::uint32_t actions = sizeof(Program::actions) / sizeof(Action);
  std::uint32_t indices = sizeof(Program::indices) / sizeof(Index);
  std::uint32_t counts = sizeof(Program::counts) / sizeof(Count);
};
inline constexpr ProgramRoom kRoom;
inline constexpr std::uint32_t kMaxRun = std::min((kRoom.actions - 1) / 2, (kRoom.indices - 3) / 2);
inline constexpr std::uint32_t kMaxReduceRun =
    std::min((kRoom.actions - 2) / 3, (kRoom.indices - 4) / 3);
inline constexpr std::uint32_t kMaxSimplexRun = std::min(kMaxRun, (kRoom.counts - 4) / 2);

// r: the group's, else the default for that many ranks: the integer next to (k/(d't))^(1/3), d' =
// max(1, ceil(log2 ranks) - 1), the rule of 000 (Performance Analysis) at its example k = 4096 t,
// at most kMaxReduceRun.
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

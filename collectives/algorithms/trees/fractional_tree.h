#pragma once
// The position of a rank in a fractional tree ([Sanders03], section 3 and Fig. 1). Freestanding.
//
// In a fractional tree, each node of a binary tree is replaced by a group of r ranks (the paper's
// PUs), which form a chain. Every rank of a group forwards every block to the next one, and the
// last rank to the head of the down successor. In addition, rank i of the group forwards block i of
// every run of r blocks to the head of the right successor. The heads of the down and right
// successors are reached r and r+1 steps after the group's own head. Therefore
// P_i = r + P_{i-r} + P_{i-r-1} ranks are reached in i steps, with P_i = i+1 for i <= r.
//
// Ranks are counted from the source, which is 0 and the head of the whole tree. The ranks of a
// subtree are consecutive: first its head group, then the subtree of the down successor, then the
// subtree of the right successor.

#include <algorithm>
#include <cstdint>

#include "collectives/schedule/table_limits.h"
#include "espalier/internal/collectives/build/parameters.h"

namespace espalier {

// The maximum run lengths for which a program's tables have room (proto/schedule.options). A rank
// of a broadcast has 2r+1 actions and 2r+3 indices (r blocks, r+2 links, one segment), a rank of a
// reduce 3r+2 actions and 3r+4 indices. With simplex ports each action has its own first step,
// which takes 2r+4 counts including N, the steps and the bound. In a reduce with simplex ports the
// sink has 4r+2 actions.
struct ProgramRoom {
  std::uint32_t actions = sizeof(Program::actions) / sizeof(Action);
  std::uint32_t indices =
      std::min<std::uint32_t>(kBoardIndices, sizeof(Program::indices) / sizeof(Index));
  std::uint32_t counts = sizeof(Program::counts) / sizeof(Count);
};
inline constexpr ProgramRoom kRoom;
inline constexpr std::uint32_t kMaxRunLength =
    std::min((kRoom.actions - 1) / 2, (kRoom.indices - 3) / 2);
inline constexpr std::uint32_t kMaxReduceRunLength =
    std::min((kRoom.actions - 2) / 3, (kRoom.indices - 4) / 3);
inline constexpr std::uint32_t kMaxSimplexRunLength =
    std::min(kMaxRunLength, (kRoom.counts - 4) / 2);
inline constexpr std::uint32_t kMaxSimplexReduceRunLength =
    std::min({kMaxReduceRunLength, kMaxSimplexRunLength, (kRoom.actions - 2) / 4});

// Returns the run length r. If it is 0, returns the default: the integer nearest to
// (k/(d't))^(1/3) with d' = max(1, ceil(log2 ranks) - 1), at most kMaxReduceRunLength. This is the
// rule of [Sanders03] (Performance Analysis) for its example k = 4096 t.
[[nodiscard]] std::uint32_t fractional_run_length(const CollectiveParameters& parameters);

// The ranks in the tree's order: from the root upward or, in a reduce to the last rank, downward.
struct TreeOrder {
  std::uint32_t ranks, root;
  bool descends;

  [[nodiscard]] std::uint32_t rank(std::uint32_t virtual_rank) const {
    return (descends ? root + ranks - virtual_rank : root + virtual_rank) % ranks;
  }
  [[nodiscard]] std::uint32_t virtual_rank(std::uint32_t rank) const {
    return (descends ? root + ranks - rank : rank + ranks - root) % ranks;
  }
};

class FractionalTree {
 public:
  // Requires 1 <= run_length <= kMaxRunLength and 1 <= ranks <= kMaxRanks (builder.h). O(depth)
  // time.
  FractionalTree(std::uint32_t ranks, std::uint32_t run_length);

  // d = min{i : P_i >= ranks} - 1: the step in which the last rank gets its first block; -1 if the
  // source is the only rank.
  [[nodiscard]] std::int32_t last_arrival() const { return depth_ - 1; }
  [[nodiscard]] std::uint32_t run_length() const { return run_length_; }
  // Steps from one run to the next: r+1. With two ranks no rank sends to the right, so there is no
  // pause, and the run length is always 1.
  [[nodiscard]] std::uint32_t period() const { return period_; }
  // Steps for N blocks: d + N + ceil(N/r) - 1 (N for two ranks).
  [[nodiscard]] Count steps() const;

  struct Seat {
    std::uint32_t head = 0;        // of this rank's group
    std::uint32_t position = 0;    // i: this rank is head + i
    std::int32_t arrival = -1;     // step in which this rank gets block 0; -1 for the source
    std::uint32_t from_group = 0;  // head of the group that feeds this group's head, if any
    bool is_right = false;         // this group is the right successor of that group
    // The rank to which this one forwards every block: the next of the group, or the head of the
    // down successor; 0: none.
    std::uint32_t down = 0;
    std::uint32_t right = 0;  // head of the group's right successor; 0: none
  };
  // Requires virtual_rank < ranks. O(depth) time.
  [[nodiscard]] Seat seat(std::uint32_t virtual_rank) const;

 private:
  // P_{i-r-1} .. P_i. P_k is at position k mod (r+2), and is 0 for k < 0.
  struct Reach {
    std::uint64_t values[kMaxRunLength + 2];
    std::int32_t at;  // i
  };
  [[nodiscard]] std::uint64_t reach(const Reach& all, std::int32_t index) const;
  void back(Reach& all, std::uint32_t steps) const;

  std::uint32_t ranks_, run_length_, period_;
  std::int32_t depth_;  // min{i : P_i >= ranks}
  Reach reach_;
};

}  // namespace espalier

#pragma once
// How a group of r ranks forwards runs of r blocks if a port either sends or receives in a step. A
// rank has r receives, r sends down and one send to the right: 2r+1 steps per run. [Sanders03]
// promises an implementation with this number of steps for its full version; this one was found by
// search. Host only.

#include <array>
#include <cstdint>
#include <vector>

#include "collectives/algorithms/trees/fractional_tree.h"

namespace espalier::searched {

// The steps of a run's blocks, increasing; the steps of the next run are 2r+1 later. If it is a
// pattern of a head, the first step is 0.
using RunSteps = std::vector<std::int32_t>;

// One way to forward the blocks that the head gets in a pattern. Steps are counted from the head's
// first step.
struct Passing {
  std::array<std::uint8_t, kMaxRunLength>
      slots{};                        // step modulo 2r+1 in which rank i sends to the right
  std::uint32_t down = 0, right = 0;  // patterns of the successors' heads
  std::int32_t down_delay = 0, right_delay = 0;  // the first steps of these heads
  std::int32_t last_arrival = 0;                 // first step of the last rank of the group
};

// All steps of a passing.
struct PassingSteps {
  std::vector<RunSteps> receives;     // of rank i; the last entry is the down successor's head
  RunSteps right;                     // of the right successor's head
  std::vector<std::uint32_t> sender;  // the rank that sends block j to the right
};
// Computes the steps if rank i sends to the right in `slots[i]`. False if the right successor then
// cannot get one run in order. Every step is the earliest possible: blocks are forwarded in order.
[[nodiscard]] bool pass_on(const RunSteps& head, const std::uint8_t* slots, PassingSteps& steps);

// Patterns closed under forwarding: the successors of each pattern also have patterns of the
// family.
struct SimplexFamily {
  std::uint32_t run_length = 1;
  std::vector<RunSteps> patterns;
  // By pattern; none is later than another in every value.
  std::vector<std::vector<Passing>> passings;
};
// The maximum run length for which a family was found.
inline constexpr std::uint32_t kMaxDirectRunLength = 10;
// Requires run <= kMaxDirectRunLength. Exhaustive for run <= 4: all patterns that follow from the
// alternating one, and all slots. For longer runs a beam search of width 60 from each of at most
// 150 patterns. Patterns without passings are not part of the family. Found once; `auto` compares
// many trees of a few families. Any thread may call it.
[[nodiscard]] const SimplexFamily& simplex_family(std::uint32_t run_length);

}  // namespace espalier::searched

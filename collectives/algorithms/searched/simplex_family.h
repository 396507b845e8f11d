#pragma once
// How groups of r PUs pass runs of r blocks on with ports that send or receive, but not both in a
// step: r receives, r sends down and one to the right, 2r+1 steps a run (000 promises such an
// implementation for its full version; this one was found by search). Host only.

#include <array>
#include <cstdint>
#include <vector>

#include "collectives/algorithms/trees/fractional_tree.h"

namespace espalier::searched {

// Steps of a run's blocks, increasing, those of the next run 2r+1 later. As a pattern of a head:
// the first is 0.
using RunSteps = std::vector<std::int32_t>;

// One way to pass on what the head gets in a pattern; steps count from the head's first.
struct Passing {
  std::array<std::uint8_t, kMaxRun> slots{};  // step modulo 2r+1 in which PU i sends to the right
  std::uint32_t down = 0, right = 0;          // patterns of the successors' heads
  std::int32_t down_delay = 0, right_delay = 0;  // their first steps
  std::int32_t last_arrival = 0;                 // first step of the group's last PU
};

// All steps of a passing.
struct PassingSteps {
  std::vector<RunSteps> receives;     // of PU i; one more for the down successor's head
  RunSteps right;                     // of the right successor's head
  std::vector<std::uint32_t> sender;  // PU that sends it block j
};
// The steps where PU i sends in `slots[i]` to the right; false if the right successor cannot get
// one run in order that way. Every step is the earliest: blocks are passed on in order.
[[nodiscard]] bool pass_on(const RunSteps& head, const std::uint8_t* slots, PassingSteps& steps);

// Patterns closed under passing on: the successors of each have patterns of the family again.
struct SimplexFamily {
  std::uint32_t run = 1;
  std::vector<RunSteps> patterns;
  std::vector<std::vector<Passing>> passings;  // of each pattern: none is later than another in all
};
// The longest run for which one is found.
inline constexpr std::uint32_t kMaxDirectRun = 10;
// run <= kMaxDirectRun. Exhaustive for run <= 4: all patterns that follow from the alternating one,
// all slots. Beyond, a beam search of width 60 from each of at most 150 patterns. Patterns without
// passings are no part of the family.
[[nodiscard]] SimplexFamily simplex_family(std::uint32_t run);

}  // namespace espalier::searched

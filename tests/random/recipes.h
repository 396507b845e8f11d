#pragma once
// Which messages and operations a collective consists of, at random. Part of plan.h.

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/random/sketch.h"

namespace espalier::random {

// One stage: `emit` adds its tasks, per segment and per block of a round.
struct Part {
  std::vector<std::uint32_t> segments;
  std::function<void(Sketch&, std::uint32_t segment, std::uint32_t block)> emit;
};

// The collective of `plan`, whose topology, root, segments and operator are set, as stages that
// follow one another. `hop_by_hop`: routers have programs, and every message goes to a neighbour;
// `neighbours`: only the second. The recipe refers to `plan` and `dice`.
[[nodiscard]] std::vector<Part> make_recipe(const Plan& plan, bool hop_by_hop, bool neighbours,
                                            Dice& dice);

}  // namespace espalier::random

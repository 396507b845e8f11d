#pragma once
// What a direct schedule sends, in the form that a placement is judged by. Host only.

#include <cstdint>
#include <vector>

#include "espalier/collectives/schedule/programs.h"

namespace espalier::embed {

// All blocks that one rank sends another in one slot. Phases of several periods have the slots of
// one (step mod period); those whose length does not grow with N have one for each step.
struct Transfer {
  std::uint32_t from = 0, to = 0;
  std::uint32_t segment = 0;
  std::uint32_t slot = 0;  // of its phase
  std::uint32_t phase = 0;
  std::int64_t first = 0;  // step of its phase in which it first takes place
};

struct Traffic {
  std::uint32_t ranks = 0;
  std::vector<std::uint32_t> slots;  // of each phase
  std::vector<Transfer> transfers;   // by phase, then first step
};

// The programs are of ranks 0, 1, .., with constant links where they are pipelined over blocks.
[[nodiscard]] Traffic traffic_of(const Programs& programs);

}  // namespace espalier::embed

#pragma once
// The transfers of a routed schedule, in the form needed to judge a placement. Host only.

#include <cstdint>
#include <vector>

#include "espalier/collectives/schedule/programs.h"

namespace espalier::embed {

// All blocks that one rank sends to another in one slot. A phase with several periods has one slot
// per step of the period (step mod period). A phase whose length does not grow with N has one slot
// per step.
struct Transfer {
  std::uint32_t from = 0, to = 0;
  std::uint32_t segment = 0;
  std::uint32_t slot = 0;  // within its phase
  std::uint32_t phase = 0;
  std::int64_t first = 0;  // first step of its phase in which it takes place
};

// All transfers of a schedule.
struct Traffic {
  std::uint32_t ranks = 0;
  std::vector<std::uint32_t> slots;  // of each phase
  std::vector<Transfer> transfers;   // by phase, then first step
};

// Returns the transfers of `programs`, which belong to ranks 0, 1, ... Requires constant links in
// phases that are pipelined over blocks.
[[nodiscard]] Traffic traffic_of(const Programs& programs);

}  // namespace espalier::embed

#pragma once
// Expanding a program into steps: every instance that exists, in step order, for one N. Host only.
// Used by `show`, the verifier and tests; the machine steps the same rules incrementally.

#include <cstdint>
#include <vector>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

struct PlaceAt {
  Buffer buffer = espalier_Buffer_BUFFER_NONE;
  std::int64_t segment = 0;
  std::int64_t block = 0;  // after clamping
  std::int64_t slot = 0;   // SCRATCH only
  std::uint32_t run = 1;   // segments from `segment` on (and slots)
};

struct Instance {
  std::int64_t step = 0;  // of the whole schedule: steps of earlier phases included
  std::uint32_t phase = 0;
  std::uint32_t action = 0;  // position in Program.actions
  std::int64_t i = 0;
  Kind kind = espalier_Kind_KIND_NONE;
  std::int64_t link = -1;  // position among the program's links; SEND, RECEIVE
  std::int64_t peer = -1;  // the node there; -1 if link is outside the table
  std::uint32_t after = 0;
  PlaceAt into, a, b;
};

// All existing instances for N = blocks, ordered by (step, action, i).
[[nodiscard]] std::vector<Instance> expand(const Program& program, std::int64_t blocks);

}  // namespace espalier

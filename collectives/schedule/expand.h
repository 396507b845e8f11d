#pragma once
// Expands a program into steps: every instance that exists, in step order, for one N. Host only.
// Used by `espalier show`, the verifier and tests; the machine evaluates the same rules step by
// step.

#include <cstdint>
#include <vector>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

// An operand of one instance.
struct OperandAt {
  Buffer buffer = Buffer::kNone;
  std::int64_t segment = 0;
  std::int64_t block = 0;           // after clamping
  std::int64_t slot = 0;            // SCRATCH only
  std::uint32_t segment_count = 1;  // consecutive segments (and slots), from `segment` onward
  std::uint32_t rotation = 0;       // rotated scratch: segments of the message; otherwise 0

  // Returns the segment `position` segments after the first.
  [[nodiscard]] std::int64_t segment_at(std::int64_t position) const {
    const std::int64_t after = segment + position;
    return rotation != 0 && after >= rotation ? after - rotation : after;
  }
};

// Returns the operand of one block: of the segment `position` segments after the first.
[[nodiscard]] inline OperandAt part_of(OperandAt operand, std::uint32_t position) {
  operand.segment = operand.segment_at(position);
  if (operand.buffer == Buffer::kScratch) operand.slot += position;
  operand.segment_count = 1;
  return operand;
}

// One instance of an action, with its counts and indices evaluated.
struct Instance {
  std::int64_t step = 0;  // of the whole schedule: counts the steps of earlier phases
  std::uint32_t phase = 0;
  std::uint32_t action = 0;  // position in Program.actions
  std::int64_t i = 0;        // the instance's number
  ActionKind kind = ActionKind::kNone;
  std::int64_t link = -1;  // position among the program's links; SEND and RECEIVE only
  std::int64_t peer = -1;  // node at the other end; -1 if `link` is outside the table
  std::uint32_t after = 0;
  OperandAt into, a, b;
};

// Returns all existing instances for N = `blocks`, ordered by (step, action, i).
[[nodiscard]] std::vector<Instance> expand(const Program& program, std::int64_t blocks);

}  // namespace espalier

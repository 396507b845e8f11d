#pragma once
// The operands of expanded instances: the places that they read and write. Internal to
// collectives/verify.

#include <cstddef>
#include <string>
#include <vector>

#include "collectives/schedule/expand.h"

namespace espalier::verify {

[[nodiscard]] inline bool is_transfer(const Instance& instance) {
  return instance.kind == ActionKind::kSend || instance.kind == ActionKind::kReceive;
}

// The operand whose block an instance moves: `a` of a send, otherwise `into`.
[[nodiscard]] inline const OperandAt& moved(const Instance& instance) {
  return instance.kind == ActionKind::kSend ? instance.a : instance.into;
}

// Returns 0, 1 or 2: within a step all sends read, then all receives write, then all operations
// run.
[[nodiscard]] inline int turn_of(ActionKind kind) {
  return kind == ActionKind::kSend ? 0 : kind == ActionKind::kReceive ? 1 : 2;
}

// Whether two operands hold the same blocks. In an all-to-all each end of a link names the other
// rank in its segments, so there the same block number and the same number of segments suffice.
[[nodiscard]] inline bool same_blocks(const Program& common, const OperandAt& a,
                                      const OperandAt& b) {
  const bool segments = common.collective == Collective::kAllToAll || a.segment == b.segment;
  return segments && a.block == b.block && a.segment_count == b.segment_count;
}

// Returns one more than the highest scratch slot that the instances use; 0 if they use none.
[[nodiscard]] std::size_t used_slots(const std::vector<Instance>& all);

// "block 3 of segment 0"; for three segments "block 0 of segments 2-4".
[[nodiscard]] std::string block_name(const OperandAt& operand);
// "scratch slot 2", "scratch slots 2-4", "output block 3 of segment 0".
[[nodiscard]] std::string operand_name(const OperandAt& operand);

}  // namespace espalier::verify

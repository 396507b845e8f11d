#pragma once
// Random programs for tests of the machine.

#include <algorithm>
#include <cstdint>
#include <random>

#include "espalier/collectives/schedule/program.h"
#include "espalier/internal/base/limits.h"

namespace espalier::testing {

using Random = std::mt19937;

inline std::int32_t pick(Random& random, std::int32_t low, std::int32_t high) {
  return std::uniform_int_distribution<std::int32_t>(low, high)(random);
}

// Builds random programs. They compute nothing useful, but pass check_program.
class RandomProgram {
 public:
  explicit RandomProgram(Random& random) : random_(random) {
    program.clear();
    program.format_version = kFormatVersion;
    constexpr Collective kCollectives[] = {Collective::kAllreduce, Collective::kAllreduce,
                                           Collective::kAllgather, Collective::kReduceScatter};
    program.collective = kCollectives[pick(random, 0, 3)];
    program.port_model = PortModel::kMultiport;
    program.contention = ContentionGuarantee::kAsync;
    program.ranks = 64;
    program.node = kNode;
    program.window = static_cast<std::uint32_t>(pick(random, 1, kMaxWindow));
    program.segments = counts_per_rank(program.collective)
                           ? program.ranks
                           : static_cast<std::uint32_t>(pick(random, 1, 3));
    program.scratch_blocks = 7;
    program.blocks_count = 1;
    // Operands of several segments need one block per segment.
    one_block_ = pick(random, 0, 3) == 0;
    program.blocks[0].block_bytes = one_block_ ? 0 : 4;
    if (one_block_ && pick(random, 0, 2) == 0) {
      program.required_features = kRotatedScratch;
      program.segments = program.ranks;
      program.scratch_blocks = 70;
    }
    program.counts_count = 1;  // steps_ref and bound_ref, which the machine ignores
    program.terms_count = 5;
    program.terms[0] = {1, 3, pick(random, 0, 5), 2, 5, 0, 0, 0};
    program.terms[1] = {1, 1, 0, 0, 8, 2, 3, 0};
    program.terms[2] = {-1, 1, 2, 3, 0, 0, 0, 0};
    program.terms[3] = {9, 1, 0, 4, 0, 0, 0, 0};
    program.terms[4] = {1, 1, 0, 0, 4, 0, 0, 1};
    static constexpr std::uint8_t kRising[] = {0, 0, 2, 0, 5, 0, 8, 0};
    program.table.bytes = kRising;
    program.table.size = sizeof kRising;
    const int phases = pick(random, 1, 3);
    for (int phase = 0; phase < phases; ++phase) add_phase();
  }
  Program program;

 private:
  std::uint8_t count(std::int32_t a, std::int32_t b) {
    program.counts[program.counts_count] = {a, b, 0, 0, 0};
    return static_cast<std::uint8_t>(program.counts_count++);
  }
  std::uint8_t index(Index index) {
    program.indices[program.indices_count] = index;
    return static_cast<std::uint8_t>(program.indices_count++);
  }
  // Returns an index with values 0 .. limit-1 for all instances.
  std::uint8_t bounded(std::int32_t limit) {
    Index index = espalier_Index_init_zero;
    index.mod = static_cast<std::uint32_t>(limit);
    index.coef = pick(random_, -2, 2);
    index.off = pick(random_, -5, 5);
    index.div = static_cast<std::uint32_t>(pick(random_, 0, 3));
    if (pick(random_, 0, 2) == 0) {
      index.first_term = static_cast<std::uint8_t>(pick(random_, 0, 1));
      index.terms = static_cast<std::uint8_t>(pick(random_, 1, 2));
    }
    return this->index(index);
  }
  // Returns an index of blocks for which some instances may not exist.
  std::uint8_t block() {
    Index index = espalier_Index_init_zero;
    index.coef = pick(random_, -2, 2);
    index.base = pick(random_, -3, 3);
    index.off = pick(random_, -2, 6);
    index.div = static_cast<std::uint32_t>(pick(random_, 0, 2));
    if (pick(random_, 0, 3) == 0) index.terms = 1;
    if (pick(random_, 0, 3) == 0) index.mod = 4;
    return this->index(index);
  }
  // The block of an action. `into` and the operands must have one length, so they are the same
  // block in different memory.
  struct Blocks {
    std::uint8_t segment = 0, block = 0;
    std::uint16_t segment_count = 1;
    bool own = false;     // the segment is this rank's
    bool around = false;  // rotated scratch: it is the first one, and the last of the message
  };
  Blocks blocks() {
    Blocks blocks{.block = block(),
                  .own = counts_per_rank(program.collective) && pick(random_, 0, 1) == 0};
    const auto segments = static_cast<std::int32_t>(program.segments);
    if (one_block_ && !blocks.own) {
      blocks.segment_count = static_cast<std::uint16_t>(pick(random_, 0, std::min(segments, 3)));
    }
    Index own = espalier_Index_init_zero;
    own.base = kNode;
    const std::int32_t segment_count = std::max<std::int32_t>(1, blocks.segment_count);
    const bool rotated = has_rotated_scratch(program);
    blocks.around = rotated && blocks.segment_count > 1 && pick(random_, 0, 1) == 0;
    const std::int32_t limit = segments - segment_count + (rotated ? 0 : 1);
    blocks.segment = blocks.own || blocks.around ? index(own) : bounded(limit);
    return blocks;
  }
  Operand operand(const Blocks& blocks, bool writable) {
    Operand operand = espalier_Operand_init_zero;
    operand.buffer = static_cast<Buffer>(pick(random_, writable ? 2 : 1, 3));
    operand.segment_ref = blocks.segment;
    operand.block_ref = blocks.block;
    operand.segment_count = blocks.segment_count;
    if (buffer_extent(program, operand.buffer) == Extent::kOwn && !blocks.own) {
      operand.buffer = Buffer::kScratch;
    }
    if (blocks.around) operand.buffer = Buffer::kScratch;
    if (operand.buffer == Buffer::kScratch && has_rotated_scratch(program)) {
      // kNode's segment is the last one, so segment s is at position s + 1 of an area.
      Index slot = program.indices[operand.segment_ref];
      slot.base = blocks.own || blocks.around ? 0 : slot.base + 1;
      slot.base += pick(random_, 0, 6);
      operand.slot_ref = index(slot);
    } else if (operand.buffer == Buffer::kScratch) {
      operand.slot_ref = bounded(7 - static_cast<std::int32_t>(operand_segment_count(operand)) + 1);
    }
    return operand;
  }
  // Returns an index that alternates between two new links.
  std::uint8_t links() {
    Index link = espalier_Index_init_zero;
    link.base = static_cast<std::int32_t>(program.peers_count);
    link.coef = 1;
    link.mod = 2;
    for (int i = 0; i < 2; ++i) {
      program.peers[program.peers_count] = program.peers_count + 1;
      ++program.peers_count;
    }
    return index(link);
  }
  // Adds a pace in the first half of the phase, with several instances per step; half of the
  // combines skip steps.
  void add_pace(Action& action, std::int32_t period, std::int32_t steps_a) {
    if (action.kind == ActionKind::kCombine && pick(random_, 0, 1) == 0) {
      return add_rising_pace(action, period, steps_a);
    }
    Index pace = espalier_Index_init_zero;
    pace.coef = 1;
    pace.off = pick(random_, 0, 3);
    pace.div = static_cast<std::uint32_t>(pick(random_, 1, 3));
    action.pace_ref = index(pace);
    action.t0_ref = count(pick(random_, 0, steps_a / 2), 0);
    const std::int32_t paces = steps_a / 2 / period;
    action.instances_ref =
        count(std::min(8, paces * static_cast<std::int32_t>(pace.div) - pace.off), 0);
  }
  // Adds the pace 0, 2, 5, 8, 9, 11, ... by a table, or 0, 2, 4, ...
  void add_rising_pace(Action& action, std::int32_t period, std::int32_t steps_a) {
    Index pace = espalier_Index_init_zero;
    const bool by_table = pick(random_, 0, 1) == 0;
    if (by_table) {
      pace.first_term = 3;
      pace.terms = 2;
    } else {
      pace.coef = 2;
    }
    action.pace_ref = index(pace);
    action.t0_ref = count(pick(random_, 0, steps_a / 2), 0);
    const std::int32_t paces = (steps_a - steps_a / 2 + period - 1) / period;
    std::int32_t instances = 0;
    while (instances < 8 && index_value(program, action.pace_ref, instances) < paces) ++instances;
    action.instances_ref = count(instances, 0);
  }
  void add_action(std::int32_t period, std::int32_t steps_a) {
    Action action = espalier_Action_init_zero;
    const ActionKind kinds[] = {ActionKind::kSend, ActionKind::kReceive, ActionKind::kCombine};
    action.kind = kinds[pick(random_, 0, 2)];
    action.t0_ref = count(pick(random_, -4, steps_a), 0);
    action.instances_ref = count(pick(random_, 0, 6), pick(random_, 0, 1));
    // Like the previous action, on the same links: several messages per step and link.
    const bool again = last_ != nullptr && pick(random_, 0, 2) == 0;
    if (again) {
      action.kind = last_->kind;
      action.t0_ref = last_->t0_ref;
      action.link_ref = last_->link_ref;
    }
    action.after = static_cast<std::uint16_t>(std::max(0, pick(random_, -1, 4)));
    action.clamp = pick(random_, 0, 2) == 0;
    const Blocks blocks = this->blocks();
    if (steps_a > 4 && pick(random_, 0, 3) == 0) {
      add_pace(action, period, steps_a);
    }
    if (action.kind == ActionKind::kCombine) {
      action.has_a = action.has_b = true;
      action.a = operand(blocks, false);
      action.b = operand(blocks, false);
    } else if (!again) {
      action.link_ref = links();
    }
    action.has_into = action.kind != ActionKind::kSend;
    if (action.has_into) action.into = operand(blocks, true);
    if (action.kind == ActionKind::kSend) {
      action.has_a = true;
      action.a = operand(blocks, false);
    }
    program.actions[program.actions_count++] = action;
    const bool transfer = action.kind != ActionKind::kCombine;
    last_ = transfer ? &program.actions[program.actions_count - 1] : nullptr;
  }
  void add_phase() {
    Phase& phase = program.phases[program.phases_count++];
    phase.period = static_cast<std::uint32_t>(pick(random_, 1, 4));
    const std::int32_t steps = pick(random_, 0, 60);
    phase.steps_ref = count(steps, pick(random_, 0, 2));
    phase.actions = static_cast<std::uint8_t>(pick(random_, 0, 4));
    last_ = nullptr;
    for (int action = 0; action < phase.actions; ++action)
      add_action(static_cast<std::int32_t>(phase.period), steps);
  }

  static constexpr std::uint32_t kNode = 63;  // above all peers
  Random& random_;
  bool one_block_ = false;
  const Action* last_ = nullptr;  // the phase's previous action, if that is a transfer
};

}  // namespace espalier::testing

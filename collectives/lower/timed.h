#pragma once
// Explicit schedules: every message and operation has its own step, and repeats one period later
// for the next blocks. They are written as programs that follow the rules of docs/architecture.md.
// Host only.

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/build/builder.h"
#include "espalier/base/result.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::lower {

// The operand that refers to block `block` of its instance.
struct TimedOperand {
  Buffer buffer = Buffer::kNone;
  std::int32_t segment = 0;
  // The value that it holds. The values of a node are numbered from 0. One instance writes each
  // value, others read it later. -1: INPUT. Values in OUTPUT are never overwritten; values in
  // SCRATCH get slots.
  std::int32_t value = -1;
};

// An instance of the first round.
struct TimedInstance {
  ActionKind kind = ActionKind::kNone;
  // >= 0. A send reads values written in an earlier step; an operation may also read values of its
  // own step, in the order of the instances.
  std::int32_t step = 0;
  std::int32_t block = 0;                  // 0 .. blocks-1
  std::uint32_t peer = 0;                  // SEND, RECEIVE
  std::uint32_t message = 0;               // the same number at both ends, and unique
  TimedOperand into = {}, a = {}, b = {};  // as in an action
};

struct TimedSchedule {
  Outline outline{};
  std::uint64_t digest = 0;  // of the schedule's origin; the programs' digest is derived from it
  std::int32_t period = 1;   // steps from one round of blocks to the next
  std::int32_t blocks = 1;   // per round: round r has the blocks blocks*r .. blocks*r + blocks-1
  Count bound{};
  std::vector<std::vector<TimedInstance>> nodes;
  std::vector<std::int32_t> values;  // of each node, so far
  std::uint32_t messages = 0;        // so far
  // Where tables are too small, numbers of an action may share their entries (node_writer.cc).
  bool share_entries = false;

  explicit TimedSchedule(std::uint32_t nodes_count) : nodes(nodes_count), values(nodes_count, 0) {}

  // Adds a block that leaves nodes_on_way[j] for nodes_on_way[j + 1] in step steps[j]; the steps
  // ascend, and there is at least one hop. In between the block waits in scratch. Finally it is in
  // `into`, whose value is set here and returned.
  TimedOperand add_message(std::int32_t block, std::span<const std::uint32_t> nodes_on_way,
                           std::span<const std::int32_t> steps, TimedOperand from,
                           TimedOperand into);
  // Adds a COMBINE, or a COPY without `b`, of one node and step, after those of this step already
  // added.
  TimedOperand add_operation(ActionKind kind, std::uint32_t node, std::int32_t step,
                             std::int32_t block, TimedOperand into, const TimedOperand& a,
                             const TimedOperand& b = {});
};

// Number of steps of the first round. N blocks take steps_of() + period * (ceil(N / blocks) - 1),
// provided that no step of the round is later than the last step of block 0. This must hold.
[[nodiscard]] std::int32_t steps_of(const TimedSchedule& schedule);

// The least period >= `least` at which no port is needed more often than its capacity: each link
// has its lanes in `topology`, and with SINGLE_SEND a node sends once per step. Nor has a step more
// messages than nodes count (step_limits.h).
[[nodiscard]] std::int32_t least_period(const topology::Topology& topology,
                                        const TimedSchedule& schedule, std::int32_t least);

// Writes the programs of all nodes. The caller must ensure that links carry no more than their
// lanes in any step (modulo the period).
//
// Waiting. A send waits by `after` for the step in which its block was made, if this step is less
// than a window back; otherwise the window itself ensures the order. An operation waits for the
// receives of one step. If it reads from two steps less than a window back, a copy of the earlier
// block onto itself, in the step of its arrival, waits for the earlier one. A slot is free for
// another value one window after its last use. A value that stays longer than a period minus that
// time has several slots, used in turn.
//
// Actions. If they all fit, each instance becomes one action without a table, with the phase's
// period. Otherwise the instances of a node that differ only in steps, peers, segments, blocks and
// slots become one action, which looks these up. On links with several lanes both ends order the
// messages of a step as the sender does.
//
// Error: a node's tables are too small.
[[nodiscard]] Result<Programs> write_programs(const CollectiveParameters& parameters,
                                              const TimedSchedule& schedule);

// The same with the largest window, at most the given one, for which the programs fit: every wait
// below the window is a separate action.
[[nodiscard]] Result<Programs> write_programs_for_window(const CollectiveParameters& parameters,
                                                         const TimedSchedule& schedule);

}  // namespace espalier::lower

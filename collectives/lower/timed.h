#pragma once
// Explicit schedules: every message and operation has a step of its own, one period later for the
// next blocks. Written as programs that follow the rules of docs/architecture.md. Host only.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/algorithms/build/builder.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::lower {

// A place of block `block` of the instance that names it.
struct TimedPlace {
  Buffer buffer = espalier_Buffer_BUFFER_NONE;
  std::int32_t segment = 0;
  // What it holds: values of a node are numbered from 0 on, one instance writes each, others read
  // it later. -1: INPUT. Values in OUTPUT are never overwritten; those in SCRATCH get slots.
  std::int32_t value = -1;
};

// An instance of the first round.
struct TimedInstance {
  Kind kind = espalier_Kind_KIND_NONE;
  std::int32_t step = 0;   // >= 0. A send reads what was written in an earlier step, an operation
                           // also of its own; those of one step in the order they stand in
  std::int32_t block = 0;  // 0 .. blocks-1
  std::uint32_t peer = 0;  // SEND, RECEIVE
  std::uint32_t message = 0;  // the same number at both ends, no other has it
  TimedPlace into, a, b;      // as in an action
};

struct TimedSchedule {
  Outline outline{};
  std::uint64_t digest = 0;  // of what it was made from; the programs' own comes of it
  std::int32_t period = 1;   // steps from a round of blocks to the next
  std::int32_t blocks = 1;   // of a round: round r has the blocks blocks*r .. blocks*r + blocks-1
  Count bound{};
  std::vector<std::vector<TimedInstance>> nodes;
  std::vector<std::int32_t> values;  // of each node, so far
  std::uint32_t messages = 0;        // so far

  explicit TimedSchedule(std::uint32_t nodes_count) : nodes(nodes_count), values(nodes_count, 0) {}

  // A block that leaves nodes[j] for nodes[j + 1] in step steps[j], ascending, one hop at least. In
  // between it waits in scratch, in the end it lies in `into` (whose value this sets and returns).
  TimedPlace add_message(std::int32_t block, std::span<const std::uint32_t> nodes_on_way,
                         std::span<const std::int32_t> steps, TimedPlace from, TimedPlace into);
  // COMBINE, or COPY without `b`, of one node and step: after those of it already added.
  TimedPlace add_operation(Kind kind, std::uint32_t node, std::int32_t step, std::int32_t block,
                           TimedPlace into, const TimedPlace& a, const TimedPlace& b = {});
};

// Steps of the first round. N blocks take steps_of() + period * (ceil(N / blocks) - 1), if none of
// the round's steps are later than the last of block 0, which must hold.
[[nodiscard]] std::int32_t steps_of(const TimedSchedule& schedule);

// The least period, `least` or more, at which no port is wanted more often than it can in a step:
// each link has its lanes in `topology`; with SINGLE_SEND nodes send once.
[[nodiscard]] std::int32_t least_period(const topology::Topology& topology,
                                        const TimedSchedule& schedule, std::int32_t least);

// Programs of all nodes; their links carry no more than lanes in a step (modulo the period), which
// is for the caller to see to.
//
// A send waits by `after` for the step in which its block was made, if that is less than a window
// back; else the window is guard. An operation waits for the receives of one step; where it reads
// of two, less than a window back, a copy of the earlier block onto itself, in the step that it
// comes in, waits for that one. A slot is free for another value a window after its last use; a
// value that stays for longer than a period less that has as many slots, in turn.
//
// Actions: one for each instance and no table, with the phase's period, where they all fit. Else
// instances of a node that agree in all but steps, peers, segments, blocks and slots are one
// action, which looks these up. On links of several lanes both ends have the messages of a step in
// the sender's order.
//
// A line that says why, and no programs, where a node's tables are too small.
[[nodiscard]] std::string write_programs(const Group& group, const TimedSchedule& schedule,
                                         Programs& programs);

}  // namespace espalier::lower

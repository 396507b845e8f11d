#pragma once
// The data that turns a node's timed instances into actions: waits, slots, order. Internal to
// collectives/lower.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/lower/timed.h"
#include "collectives/schedule/table_limits.h"

namespace espalier::lower {

// The scratch slots of a value: slot `first`, or in turn first .. first + turns - 1.
struct SlotTurns {
  std::int32_t first = 0, turns = 1;
};

// An instance and its additional data.
struct Row {
  const TimedInstance* instance = nullptr;
  std::int32_t after = 0;
  // Rows with a higher turn must come later in the program for the same step. For operations: the
  // number of operations of their step on which they depend, one after the other. For receives: see
  // set_orders().
  std::int32_t turn = 0;
  std::int32_t order = 0;  // among the messages of its link in its step of the period
  SlotTurns into, a, b;
  std::int32_t span = 0;  // period in which the instance lies, if its slots take turns

  [[nodiscard]] bool is_operation() const {
    return instance->kind == ActionKind::kCombine || instance->kind == ActionKind::kCopy;
  }
  // Rows with equal keys can be one action. Actions are sorted by key.
  using Key = std::array<std::int32_t, 11>;
  [[nodiscard]] Key key() const;
};

struct NodeRows {
  std::vector<Row> rows;
  std::vector<std::unique_ptr<TimedInstance>> copies;  // copies that only wait; rows point at them
  std::int32_t slots = 0;
};

[[nodiscard]] NodeRows rows_of(const std::vector<TimedInstance>& instances, std::int32_t period,
                               std::int32_t window);

// Orders the messages that share a link and a step of the period. The order of the sender's actions
// decides. If the receiver's order differs, its rows get turns.
void set_orders(std::vector<NodeRows>& nodes, std::int32_t period);

// Writes one node's rows as programs[node]. `paced`: rows with the same key become one action that
// looks up its steps, and the phase's period is 1. Otherwise each row is an action, and the phase
// has the period of the schedule. kTooLarge: the program's tables, or the looked-up one, are too
// small; `excess` then has the table, or is empty.
[[nodiscard]] Status write_node(const CollectiveParameters& parameters,
                                const TimedSchedule& schedule, bool paced, std::uint32_t node,
                                const NodeRows& rows, Programs& programs, TableExcess& excess);

}  // namespace espalier::lower

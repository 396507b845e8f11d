#pragma once
// What a node's timed instances need to become actions: waits, slots, order. Internal to
// collectives/lower.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/lower/timed.h"

namespace espalier::lower {

// Where a value lies in scratch: slot `first`, or in turn first .. first + turns - 1.
struct SlotTurns {
  std::int32_t first = 0, turns = 1;
};

// An instance, and what it needs beside.
struct Row {
  const TimedInstance* instance = nullptr;
  std::int32_t after = 0;
  // What must come later in the program for the same step: of operations, the number of those in
  // their step that they are made of, one upon the other; of receives, see set_orders().
  std::int32_t turn = 0;
  std::int32_t order = 0;  // among the messages of its link in its step of the period
  SlotTurns into, a, b;
  std::int32_t span = 0;  // period that the instance stands in, where its slots take turns

  [[nodiscard]] bool is_operation() const {
    return instance->kind == espalier_Kind_COMBINE || instance->kind == espalier_Kind_COPY;
  }
  // Rows that agree in this can be one action; actions are in this order.
  using Key = std::array<std::int32_t, 11>;
  [[nodiscard]] Key key() const;
};

struct NodeRows {
  std::vector<Row> rows;
  std::vector<std::unique_ptr<TimedInstance>> copies;  // that only wait; rows point at them
  std::int32_t slots = 0;
};

[[nodiscard]] NodeRows rows_of(const std::vector<TimedInstance>& instances, std::int32_t period,
                               std::int32_t window);

// Messages that share a link and a step of the period: the sender's actions say in which order they
// go; the receiver's get turns where theirs would say another.
void set_orders(std::vector<NodeRows>& nodes, std::int32_t period);

}  // namespace espalier::lower

#include "collectives/lower/timed_rows.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/assert.h"

namespace espalier::lower {
namespace {
// One value of a node.
struct Value {
  const TimedInstance* maker = nullptr;
  std::int32_t depth = 0;  // of the operation that made it: Row::turn
  std::int32_t last = 0;   // step of its last use
  bool in_scratch = false;
  bool copied = false;  // by a copy that only waits
  SlotTurns slot;
};

// Scratch slots; each is free or taken in every step of a period.
class Slots {
 public:
  explicit Slots(std::int32_t period) : period_(period) {}

  // Takes a slot that is free from step `first` for `steps` <= period steps.
  std::int32_t take(std::int32_t first, std::int32_t steps) {
    ESPALIER_ASSERT(first >= 0 && 0 < steps && steps <= period_);
    std::size_t slot = 0;
    while (slot < taken_.size() && !is_free(slot, first, steps)) ++slot;
    if (slot == taken_.size()) taken_.emplace_back(as_index(period_), false);
    for (std::int32_t step = 0; step < steps; ++step) taken_[slot][operand(first + step)] = true;
    return static_cast<std::int32_t>(slot);
  }
  [[nodiscard]] std::int32_t count() const { return static_cast<std::int32_t>(taken_.size()); }

 private:
  [[nodiscard]] std::size_t operand(std::int32_t step) const { return as_index(step % period_); }
  [[nodiscard]] bool is_free(std::size_t slot, std::int32_t first, std::int32_t steps) const {
    for (std::int32_t step = 0; step < steps; ++step) {
      if (taken_[slot][operand(first + step)]) return false;
    }
    return true;
  }

  std::int32_t period_;
  std::vector<std::vector<bool>> taken_;
};

class NodeReader {
 public:
  NodeReader(const std::vector<TimedInstance>& instances, std::int32_t period, std::int32_t window)
      : instances_(instances), period_(period), window_(window) {}

  NodeRows read() {
    find_values();
    std::vector<const TimedInstance*> order;  // by steps
    for (const TimedInstance& one : instances_) order.push_back(&one);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->step < b->step; });
    for (const TimedInstance* next : order) {
      const TimedInstance& one = *next;
      Row row;
      row.instance = next;
      if (one.kind == ActionKind::kSend) {
        row.after = wait_for(one, one.a);
      } else if (row.is_operation()) {
        add_operation(row);
      }
      rows_.rows.push_back(row);
    }
    give_slots();
    for (Row& row : rows_.rows) {
      const TimedInstance& one = *row.instance;
      for (const auto& [operand, slot] : {std::pair(&one.into, &row.into),
                                          std::pair(&one.a, &row.a), std::pair(&one.b, &row.b)}) {
        if (operand->buffer != Buffer::kScratch) continue;
        *slot = values_[as_index(operand->value)].slot;
        if (slot->turns > 1) row.span = one.step / period_ + 1;
      }
    }
    return std::move(rows_);
  }

 private:
  void find_values() {
    for (const TimedInstance& one : instances_) {
      for (const TimedOperand* operand : {&one.into, &one.a, &one.b}) {
        if (operand->value < 0) continue;
        if (values_.size() <= as_index(operand->value))
          values_.resize(as_index(operand->value) + 1);
        Value& value = values_[as_index(operand->value)];
        value.last = std::max(value.last, one.step);
        // One instance writes each value.
        ESPALIER_ASSERT(operand != &one.into || value.maker == nullptr);
        if (operand == &one.into) value.maker = &one;
        if (operand->buffer == Buffer::kScratch) value.in_scratch = true;
      }
    }
  }

  // Steps since the value was made; 0 if the window ensures the order.
  [[nodiscard]] std::int32_t wait_for(const TimedInstance& reader,
                                      const TimedOperand& operand) const {
    if (operand.value < 0) return 0;
    ESPALIER_ASSERT(as_index(operand.value) < values_.size());
    ESPALIER_ASSERT(values_[as_index(operand.value)].maker != nullptr);
    const std::int32_t back = reader.step - values_[as_index(operand.value)].maker->step;
    ESPALIER_ASSERT(reader.kind == ActionKind::kSend ? back > 0 : back >= 0);
    return back < window_ ? back : 0;
  }

  void add_operation(Row& row) {
    const TimedInstance& one = *row.instance;
    const TimedOperand* late = nullptr;  // the latest operand that was received
    for (const TimedOperand* operand : {&one.a, &one.b}) {
      if (operand->value < 0) continue;
      const Value& value = values_[as_index(operand->value)];
      ESPALIER_ASSERT(value.maker != nullptr && value.maker->step <= one.step);
      if (value.maker->kind != ActionKind::kReceive) {
        if (value.maker->step == one.step) row.turn = std::max(row.turn, value.depth + 1);
        continue;
      }
      const bool later =
          late == nullptr || values_[as_index(late->value)].maker->step < value.maker->step;
      const TimedOperand* other = later ? late : operand;
      if (later) late = operand;
      if (other != nullptr) wait_by_copy(one, *other, *late);
    }
    if (late != nullptr) row.after = wait_for(one, *late);
    if (one.into.value >= 0) values_[as_index(one.into.value)].depth = row.turn;
  }

  // Waits for `operand`, which arrived before `late`; the operation itself waits for `late`.
  void wait_by_copy(const TimedInstance& reader, const TimedOperand& operand,
                    const TimedOperand& late) {
    Value& value = values_[as_index(operand.value)];
    ESPALIER_ASSERT(value.maker->kind == ActionKind::kReceive);
    ESPALIER_ASSERT(value.maker->step <= values_[as_index(late.value)].maker->step);
    const bool together = value.maker->step == values_[as_index(late.value)].maker->step;
    if (together || reader.step - value.maker->step >= window_ || value.copied) return;
    value.copied = true;
    auto copy = std::make_unique<TimedInstance>(*value.maker);
    copy->kind = ActionKind::kCopy;
    copy->a = copy->into;
    Row row;
    row.instance = copy.get();
    rows_.copies.push_back(std::move(copy));
    rows_.rows.push_back(row);
  }

  // A receive may write its slot once the step a window earlier has retired (rule 7).
  void give_slots() {
    std::vector<Value*> order;
    for (Value& value : values_) {
      if (value.in_scratch) order.push_back(&value);
    }
    std::stable_sort(order.begin(), order.end(), [](const Value* a, const Value* b) {
      return std::pair(a->maker->step, a->last) < std::pair(b->maker->step, b->last);
    });
    Slots shared(period_);
    std::int32_t own = 0;
    for (Value* value : order) {
      ESPALIER_ASSERT(value->maker != nullptr && value->maker->step <= value->last);
      const std::int32_t steps = value->last - value->maker->step + window_;
      value->slot.turns = (steps + period_ - 1) / period_;
      if (value->slot.turns == 1) {
        value->slot.first = shared.take(value->maker->step, steps);
      } else {
        value->slot.first = own;
        own += value->slot.turns;
      }
    }
    for (Value* value : order) {
      if (value->slot.turns > 1) value->slot.first += shared.count();
    }
    rows_.slots = shared.count() + own;
  }

  const std::vector<TimedInstance>& instances_;
  std::int32_t period_, window_;
  std::vector<Value> values_;
  NodeRows rows_;
};

}  // namespace

Row::Key Row::key() const {
  const TimedInstance& one = *instance;
  return {is_operation() ? 1 : 0,
          turn,
          one.kind,
          after,
          one.into.buffer,
          one.a.buffer,
          one.b.buffer,
          into.turns,
          a.turns,
          b.turns,
          span};
}

NodeRows rows_of(const std::vector<TimedInstance>& instances, std::int32_t period,
                 std::int32_t window) {
  ESPALIER_ASSERT(period >= 1 && window >= 1);
  return NodeReader(instances, period, window).read();
}

void set_orders(std::vector<NodeRows>& nodes, std::int32_t period) {
  // By receiver, sender and step of the period; then in the sender's order.
  using Meeting = std::tuple<std::uint32_t, std::uint32_t, std::int32_t>;
  using Sent = std::tuple<Row::Key, std::uint32_t, Row*>;
  std::map<Meeting, std::vector<Sent>> meetings;
  std::map<std::uint32_t, Row*> receives;  // by message
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    for (Row& row : nodes[node].rows) {
      const TimedInstance& one = *row.instance;
      // A message has one number, the same at both ends.
      ESPALIER_ASSERT(one.kind != ActionKind::kReceive || receives.count(one.message) == 0);
      if (one.kind == ActionKind::kReceive) receives[one.message] = &row;
      if (one.kind != ActionKind::kSend) continue;
      meetings[{one.peer, node, one.step % period}].push_back({row.key(), one.message, &row});
    }
  }
  for (auto& [meeting, sent] : meetings) {
    std::sort(sent.begin(), sent.end());
    const Row* before = nullptr;
    for (std::size_t k = 0; k < sent.size(); ++k) {
      const auto& [key, message, send] = sent[k];
      Row* receive = receives[message];
      ESPALIER_ASSERT(receive != nullptr && receive->instance->peer == std::get<1>(meeting));
      ESPALIER_ASSERT(receive->instance->step == send->instance->step);
      send->order = receive->order = static_cast<std::int32_t>(k);
      if (before != nullptr) {
        receive->turn = before->turn;
        if (receive->key() < before->key()) ++receive->turn;
      }
      before = receive;
    }
  }
}

}  // namespace espalier::lower

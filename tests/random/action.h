#pragma once
// One action that stands for some progressions of a node. Part of encode.h.

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/random/rows.h"

namespace espalier::random {

// Every `more`-th round of a progression, beginning with round `turn`.
struct Member {
  const Progression* of = nullptr;
  std::int64_t more = 1, turn = 0;
  std::int64_t first = 0, block = 0;  // of its first round
  std::int64_t stride = 1, pace = 1;  // of its rounds
  // Position in the action: instance q * (round + late) + slot.
  std::int64_t slot = 0, late = 0;
};

// Members of one kind, `after`, buffers and rounds, in one action.
class ActionDraft {
 public:
  // `plain`: omits the instances that never exist, if the action is complete without them.
  ActionDraft(const Plan& plan, const NodePlan& node, std::int64_t period, bool plain)
      : plan_(&plan), node_(&node), period_(period), plain_(plain) {}

  std::vector<Member> members;

  // Instances follow one another a period apart. False: the members' steps do not let them.
  [[nodiscard]] bool lay_out_evenly(Choice& choice);
  // Instances follow the steps that a pace gives, in their order; those of one step in the order
  // given.
  [[nodiscard]] bool lay_out_paced(Choice& choice);
  // The action, with its rows written. `links`: position of each node among its peers. Choices are
  // made from `mark` onward. Nothing if there is no room.
  [[nodiscard]] std::optional<Action> write(RowWriter& rows, const std::vector<std::int64_t>& links,
                                            Choice& choice, std::uint64_t mark) const;

  [[nodiscard]] std::int64_t instances() const { return q_; }  // of a round
  [[nodiscard]] bool paced() const { return !paces_.empty(); }

 private:
  [[nodiscard]] const Stage& stage() const;
  [[nodiscard]] bool delay(Choice& choice);
  [[nodiscard]] RowShape shape() const;
  [[nodiscard]] std::uint8_t block_row(RowWriter& rows) const;
  [[nodiscard]] Operand operand(RowWriter& rows, Spot Progression::*spot, Choice& choice) const;
  [[nodiscard]] std::uint8_t slot_row(RowWriter& rows, Spot Progression::*spot,
                                      Choice& choice) const;
  template <typename Value>
  [[nodiscard]] std::uint8_t constant_row(RowWriter& rows, const Value& value) const;
  [[nodiscard]] std::optional<Count> find_instances(Choice& choice, bool& exact) const;
  [[nodiscard]] std::int64_t needed(std::int64_t blocks) const;
  [[nodiscard]] std::int64_t allowed(std::int64_t blocks, std::int64_t least) const;
  [[nodiscard]] std::int64_t step_of(std::int64_t instance) const;

  const Plan* plan_;
  const NodePlan* node_;
  std::int64_t period_;
  bool plain_;
  std::int64_t q_ = 1;
  std::int64_t base_ = 0;            // step of instance 0, from the stage's start
  std::vector<std::int64_t> paces_;  // by slot
};

}  // namespace espalier::random

#pragma once
// Schedules of one block that are repeated every so many steps, block after block: a round is one
// block's. Freestanding. Instance i of an action runs in step i of the rounds (phases of period 1).
// What runs in some steps of a round only has a negative block, and so does not exist, in the
// others.

#include "collectives/algorithms/build/builder.h"

namespace espalier {

class Rounds {
 public:
  // `period`: steps of a round.
  Rounds(Builder& builder, std::uint32_t period) : builder_(builder), period_(period) {}
  [[nodiscard]] std::uint32_t period() const { return period_; }

  // The block of an action that runs in the steps first .. end-1 of each round, first < end <=
  // period, counted from its own first step: that of its round. Two in turn share a term.
  [[nodiscard]] std::uint8_t block(std::uint32_t first, std::uint32_t end);
  [[nodiscard]] std::uint8_t block(std::uint32_t length) { return block(0, length); }
  // Instances up to the end of the last round; with a pace, which keeps within the phase, only up
  // to `length` in that round.
  [[nodiscard]] std::uint8_t instances() { return instances(period_); }
  [[nodiscard]] std::uint8_t instances(std::uint32_t length);
  // The number of the round, `ahead` steps later, times `coef`.
  [[nodiscard]] Term round(std::int32_t coef, std::int32_t ahead = 0) const;
  // The step of the round, times `coef`.
  [[nodiscard]] Term step(std::int32_t coef) const;

 private:
  Builder& builder_;
  std::uint32_t period_;
  bool round_last_ = false;  // the last term that block() added begins its round
};

// Rounds of p-1 steps among p ranks: in each a rank has a step for every other rank.
class RankRounds : public Rounds {
 public:
  RankRounds(Builder& builder, std::uint32_t ranks, std::uint32_t me)
      : Rounds(builder, ranks - 1),
        builder_(builder),
        ranks_(static_cast<std::int32_t>(ranks)),
        me_(static_cast<std::int32_t>(me)) {}

  // The rank `places` after this one (before it: negative), |places| <= ranks.
  [[nodiscard]] std::uint32_t rank(std::int32_t places) const {
    return static_cast<std::uint32_t>((me_ + ranks_ + places) % ranks_);
  }
  // The rank places + sign * (step of the round) after this one.
  [[nodiscard]] std::uint8_t moving(std::int32_t places, std::int32_t sign);
  // base + sign * (step of the round).
  [[nodiscard]] std::uint8_t counting(std::int32_t base, std::int32_t sign);
  // Ends the program, whose one phase these rounds are. One port: in a round every rank receives,
  // or sends, a block for each other rank.
  [[nodiscard]] Status finish();

 private:
  Builder& builder_;
  std::int32_t ranks_, me_;
};

}  // namespace espalier

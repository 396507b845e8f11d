#pragma once
// Schedules for one block that are repeated at a fixed interval, one block after the other. One
// such repetition is a round. Freestanding. Instance i of an action runs in step i of the rounds
// (phases of period 1). If an action runs only in some steps of a round, its block is negative in
// the other steps, so those instances do not exist.

#include "collectives/build/builder.h"
#include "espalier/internal/base/assert.h"

namespace espalier {

class Rounds {
 public:
  // `period`: steps of a round.
  Rounds(Builder& builder, std::uint32_t period) : builder_(builder), period_(period) {}
  [[nodiscard]] std::uint32_t period() const { return period_; }

  // Returns the block of an action that runs in steps first .. end-1 of each round,
  // first < end <= period. Steps are counted from the action's own first step, which is in its
  // first round. Two consecutive calls share a term.
  [[nodiscard]] std::uint8_t block(std::uint32_t first, std::uint32_t end);
  [[nodiscard]] std::uint8_t block(std::uint32_t length) { return block(0, length); }
  // The same for schedules of one block, in which every round has block 0.
  [[nodiscard]] std::uint8_t only_block(std::uint32_t first, std::uint32_t end);
  // Returns the instances up to the end of the last round. An action with a pace, which must stay
  // within the phase, has instances only up to `length` in the last round.
  [[nodiscard]] std::uint8_t instances() { return instances(period_); }
  [[nodiscard]] std::uint8_t instances(std::uint32_t length);
  // coef * (the number of the round, `ahead` steps later).
  [[nodiscard]] Term round(std::int32_t coef, std::int32_t ahead = 0) const;
  // coef * (the step of the round).
  [[nodiscard]] Term step(std::int32_t coef) const;

 private:
  Builder& builder_;
  std::uint32_t period_;
  bool round_last_ = false;  // the last term that block() added begins its round
};

// Rounds of p-1 steps among the p ranks of a group: in each round a rank has one step per other
// rank. The numbers of ranks are those in the group; rank v has segment segments.rank(v).
class RankRounds : public Rounds {
 public:
  RankRounds(Builder& builder, std::uint32_t ranks, std::uint32_t me, const Group& segments = {})
      : Rounds(builder, ranks - 1),
        builder_(builder),
        segments_(segments),
        ranks_(static_cast<std::int32_t>(ranks)),
        me_(static_cast<std::int32_t>(me)) {}

  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(ranks_); }
  [[nodiscard]] const Group& segments() const { return segments_; }
  // The segment of this rank.
  [[nodiscard]] std::uint32_t own_segment() const { return segments_.rank(rank(0)); }

  // The rank `places` after this one (negative: before it), |places| <= ranks.
  [[nodiscard]] std::uint32_t rank(std::int32_t places) const {
    ESPALIER_ASSERT(-ranks_ <= places && places <= ranks_);
    return static_cast<std::uint32_t>((me_ + ranks_ + places) % ranks_);
  }
  // The segment of the rank `places + sign * (step of the round)` after this one.
  [[nodiscard]] std::uint8_t moving(std::int32_t places, std::int32_t sign) {
    return moving(places, sign, segments_);
  }
  // The same with numbers other than the segments'.
  [[nodiscard]] std::uint8_t moving(std::int32_t places, std::int32_t sign, const Group& numbers);
  // base + sign * (step of the round).
  [[nodiscard]] std::uint8_t counting(std::int32_t base, std::int32_t sign);
  // Ends the phase. `turns`: the period of the phase, if as many groups take turns.
  void end_phase(std::uint32_t turns = 1);
  // Ends the program; these rounds are its only phase. With one port, every rank receives (or
  // sends) one block per other rank in each round.
  [[nodiscard]] Status finish();

 private:
  Builder& builder_;
  Group segments_;
  std::int32_t ranks_, me_;
};

}  // namespace espalier

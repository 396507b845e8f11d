#pragma once
// Indices of what goes round and round: a collective among p ranks whose every block takes a round
// of p-1 steps. Freestanding. Instance i runs in step i: in round (of block) i div (p-1), as its
// step i mod (p-1). What runs in some steps of a round only has a negative block, and so does not
// exist, in the others.

#include "collectives/algorithms/builder.h"

namespace espalier {

class Rounds {
 public:
  Rounds(Builder& builder, std::uint32_t ranks, std::uint32_t me)
      : builder_(builder),
        ranks_(static_cast<std::int32_t>(ranks)),
        steps_(static_cast<std::int32_t>(ranks) - 1),
        me_(static_cast<std::int32_t>(me)) {}

  // The rank `places` after this one (before it: negative), |places| <= ranks.
  [[nodiscard]] std::uint32_t rank(std::int32_t places) const {
    return static_cast<std::uint32_t>((me_ + ranks_ + places) % ranks_);
  }
  // The rank places + sign * (step of the round) after this one.
  [[nodiscard]] std::uint8_t moving(std::int32_t places, std::int32_t sign) {
    Index row{};
    row.off = me_ + places;
    row.mod = static_cast<std::uint32_t>(ranks_);
    return builder_.index(row, {step(sign)});
  }
  // base + sign * (step of the round).
  [[nodiscard]] std::uint8_t counting(std::int32_t base, std::int32_t sign) {
    Index row{};
    row.base = base;
    return builder_.index(row, {step(sign)});
  }

  // The block: in every step of a round; only in the first (last) one; in all but that.
  [[nodiscard]] std::uint8_t block() { return builder_.index(Index{}, {quotient(1, 0)}); }
  [[nodiscard]] std::uint8_t block_in_first() { return where_equal(steps_ - 1); }
  [[nodiscard]] std::uint8_t block_but_in_first() { return where_next(steps_ - 1); }
  [[nodiscard]] std::uint8_t block_in_last() { return where_next(1); }
  [[nodiscard]] std::uint8_t block_but_in_last() { return where_equal(1); }

  // As many instances as there are steps of all rounds, (p-1)N.
  [[nodiscard]] std::uint8_t instances() { return builder_.count(0, steps_); }
  // Ends the phase of all rounds.
  void phase() { builder_.phase(1, 0, steps_); }
  // One port: in a round every rank receives, or sends, a block for each other rank.
  [[nodiscard]] Status finish() { return builder_.finish(0, steps_); }

 private:
  static constexpr std::int32_t kFar = kMaxField - 1;  // above any block

  // Whether instances i and i + ahead are of the same round tells the steps of a round apart: with
  // R = p-1, d = floor((i + ahead) / R) - floor(i / R) is 0 or 1. The block where d = 0, -kFar and
  // less elsewhere; or where d = 1.
  [[nodiscard]] std::uint8_t where_equal(std::int32_t ahead) {
    return builder_.index(Index{}, {quotient(1 + kFar, 0), quotient(-kFar, ahead)});
  }
  [[nodiscard]] std::uint8_t where_next(std::int32_t ahead) {
    Index row{};
    row.base = -kFar;
    return builder_.index(row, {quotient(1 - kFar, 0), quotient(kFar, ahead)});
  }
  [[nodiscard]] Term quotient(std::int32_t coef, std::int32_t ahead) const {
    const auto div = static_cast<std::uint32_t>(steps_);
    return {.coef = coef,
            .mul = 1,
            .add = ahead,
            .div = div,
            .mod = 0,
            .base = 0,
            .digits = 0,
            .table = 0};
  }
  [[nodiscard]] Term step(std::int32_t coef) const {
    const auto mod = static_cast<std::uint32_t>(steps_);
    return {
        .coef = coef, .mul = 1, .add = 0, .div = 0, .mod = mod, .base = 0, .digits = 0, .table = 0};
  }

  Builder& builder_;
  std::int32_t ranks_, steps_, me_;
};

}  // namespace espalier

#pragma once
// Any number of ranks in a butterfly, which needs a power of two. Freestanding.
//
// The p ranks form 2^levels groups, levels = floor(log2 p). If p is no power of two, each of the
// first p - 2^levels groups has two consecutive ranks. The first rank of a group is its leader. The
// other one, its mate, gives its data to the leader before the butterfly and gets the result from
// it afterwards. So every group, and every aligned set of 2^l groups, is an interval of ranks:
// operators need not be commutative.

#include <cstdint>

#include "collectives/algorithms/build/builder.h"

namespace espalier {

class Folding {
 public:
  // me < ranks, ranks >= 2.
  Folding(std::uint32_t ranks, std::uint32_t me)
      : levels_(log2_ceil(ranks + 1) - 1), pairs_(ranks - (1u << levels_)), me_(me) {}

  [[nodiscard]] std::uint32_t levels() const { return levels_; }
  [[nodiscard]] std::uint32_t groups() const { return 1u << levels_; }
  // 1 if there are mates, which take one step before the butterfly and one after it; otherwise 0.
  [[nodiscard]] std::uint32_t folds() const { return pairs_ > 0 ? 1 : 0; }
  // The leader of a group, which is its first rank. first(groups()) is p.
  [[nodiscard]] std::uint32_t first(std::uint32_t group) const {
    return group + (group < pairs_ ? group : pairs_);
  }
  // The group of this rank.
  [[nodiscard]] std::uint32_t group() const { return in_pair() ? me_ / 2 : me_ - pairs_; }
  [[nodiscard]] bool is_leader() const { return !in_pair() || me_ % 2 == 0; }
  // Whether this rank's group has two ranks; mate() is the other one.
  [[nodiscard]] bool in_pair() const { return me_ < 2 * pairs_; }
  [[nodiscard]] std::uint32_t mate() const { return me_ ^ 1; }

  // Whether this rank's group is in the upper half of its 2^(level+1) groups.
  [[nodiscard]] bool is_upper(std::uint32_t level) const { return (group() >> level & 1) != 0; }
  // The leader that this leader exchanges with at `level`.
  [[nodiscard]] std::uint32_t partner(std::uint32_t level) const {
    return first(group() ^ 1u << level);
  }

 private:
  std::uint32_t levels_, pairs_, me_;
};

}  // namespace espalier

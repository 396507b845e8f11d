#pragma once
// Any number of ranks in a butterfly, which needs a power of two. Freestanding.
//
// The p ranks form 2^levels groups, levels = floor(log2 p). If p is not a power of two, each of the
// first p - 2^levels groups has two consecutive ranks. The first rank of a group is its leader,
// except that the root of a rooted collective leads its group. The other rank, the leader's mate,
// gives its data to the leader before the butterfly and gets the result, if it needs one, from it
// afterwards. So every group, and every aligned set of 2^l groups, is an interval of ranks:
// operators need not be commutative.

#include <cstdint>

#include "collectives/build/builder.h"

namespace espalier {

class Folding {
 public:
  // me < ranks, root < ranks, ranks >= 2. Without a root: 0, which leads its group in any case.
  Folding(std::uint32_t ranks, std::uint32_t me, std::uint32_t root = 0)
      : levels_(log2_ceil(ranks + 1) - 1), pairs_(ranks - (1u << levels_)), me_(me), root_(root) {}

  [[nodiscard]] std::uint32_t levels() const { return levels_; }
  [[nodiscard]] std::uint32_t groups() const { return 1u << levels_; }
  // 1 if there are mates, which take one step before the butterfly and one after it; otherwise 0.
  [[nodiscard]] std::uint32_t folds() const { return pairs_ > 0 ? 1 : 0; }
  // The first rank of a group. first(groups()) is p.
  [[nodiscard]] std::uint32_t first(std::uint32_t group) const {
    return group + (group < pairs_ ? group : pairs_);
  }
  [[nodiscard]] std::uint32_t leader(std::uint32_t group) const {
    return group == root_group() ? root_ : first(group);
  }
  // The group of this rank.
  [[nodiscard]] std::uint32_t group() const { return group_of(me_); }
  [[nodiscard]] std::uint32_t root_group() const { return group_of(root_); }
  [[nodiscard]] bool is_leader() const { return leader(group()) == me_; }
  [[nodiscard]] bool is_first() const { return first(group()) == me_; }
  // The number of the highest binary digit in which the root's group differs from this rank's
  // group; levels() if they are the same.
  [[nodiscard]] std::uint32_t root_level() const {
    const std::uint32_t difference = group() ^ root_group();
    return difference == 0 ? levels_ : log2_ceil(difference + 1) - 1;
  }
  // Whether this rank's group has two ranks; mate() is the other one.
  [[nodiscard]] bool in_pair() const { return me_ < 2 * pairs_; }
  [[nodiscard]] std::uint32_t mate() const { return me_ ^ 1; }

  // Whether this rank's group is in the upper half of its 2^(level+1) groups.
  [[nodiscard]] bool is_upper(std::uint32_t level) const { return (group() >> level & 1) != 0; }
  // The leader that this leader exchanges with at `level`.
  [[nodiscard]] std::uint32_t partner(std::uint32_t level) const {
    return leader(group() ^ 1u << level);
  }

 private:
  [[nodiscard]] std::uint32_t group_of(std::uint32_t rank) const {
    return rank < 2 * pairs_ ? rank / 2 : rank - pairs_;
  }

  std::uint32_t levels_, pairs_, me_, root_;
};

}  // namespace espalier

#pragma once
// The binomial tree over intervals of ranks, with the root anywhere. The ranks are halved
// repeatedly; the leader of an interval sends to the first rank of the half that it is not in.
// Intervals do not wrap around, so their ranks are in order. Freestanding.

#include <cstdint>

namespace espalier {

// The ranks first .. first + size - 1, with their leader.
struct RankInterval {
  std::uint32_t first, size, leader;
};

struct RankHalves {
  RankInterval kept, given;  // `kept` contains the leader; `given` is the other half
};
// RankHalves an interval of at least two ranks.
[[nodiscard]] RankHalves halve_ranks(const RankInterval& whole);

// A rank in the tree: the interval that it leads after its receive.
struct HalvingTree {
  std::uint32_t steps;     // of the whole tree: ceil(log2 ranks)
  RankInterval interval;   // the whole tree's at the root
  std::uint32_t step = 0;  // in which the interval is given to this rank; 0 at the root
  std::uint32_t from;      // the rank that gives it
  bool root;

  HalvingTree(std::uint32_t ranks, std::uint32_t root, std::uint32_t me);

  // The step in which the first half of `interval` is given away.
  [[nodiscard]] std::uint32_t first_send() const { return root ? 0 : step + 1; }
};

}  // namespace espalier

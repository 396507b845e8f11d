#pragma once
// A tree over intervals of ranks, with any radix k: binomial for k = 2, otherwise k-nomial.
// Freestanding.
//
// The leader of an interval holds the interval's data. A division splits the interval into
// min(k, size) parts whose sizes differ by at most one. The leader gives each part that it is not
// in to one of that part's ranks (Leaders), which becomes the leader there, and keeps its own part.
// Intervals do not wrap around: parts are contiguous in memory, and an operator that combines the
// results of neighbouring parts need not commute.
//
// On a mesh, on which ranks are numbered row by row and routes are XY, no two messages of a step
// share a link in two cases (tests/algorithms/mesh_test.cc):
//  * towards the root (reduce, gather), with Leaders::kNearest, for every root and radix;
//  * away from rank 0, and so from any root if ranks are counted from there cyclically.
// [MXEN94] orders the ranks column by column for messages away from a root.
//
// In the postal model a leader begins the sends of a division S ticks apart, and all leaders begin
// their next division at the same time, (k-2)S + L ticks after the last one. Let r = ceil(log_k p)
// be the divisions and m = ceil(p / k^(r-1)) the size of the largest interval before the last one.
// The tree then takes (r-1)((k-2)S + L) + (m-2)S + L ticks: (r-1)(k-1) + m-1 steps for S = L = 1.

#include <cstdint>

#include "espalier/internal/collectives/build/parameters.h"

namespace espalier {

// The ranks first .. first + size - 1, whose data are at `leader`.
struct Interval {
  std::uint32_t first, size, leader;
};

// The rank that leads a part which its interval's leader gives away.
enum class Leaders : std::uint8_t {
  kFirst,    // the part's first rank
  kNearest,  // the rank with the number nearest to the interval's leader: the last one before it
};

// One division of an interval. Part i is the i-th in rank order; `kept` contains the leader.
// The given parts are ordered by turn: turn 0 is sent first. The parts before `kept` come first, in
// rank order, then the parts after it, in reverse. Reversed in time, each next part is a neighbour
// of the ranks that the leader already has on that side.
class Division {
 public:
  Division(const Interval& whole, std::uint32_t radix, Leaders leaders);
  [[nodiscard]] std::uint32_t turns() const { return parts_ - 1; }
  [[nodiscard]] Interval given(std::uint32_t turn) const;
  [[nodiscard]] Interval kept() const;
  // The turn of the part that contains `rank`; turns() if the leader keeps that part.
  [[nodiscard]] std::uint32_t turn_of(std::uint32_t rank) const;

 private:
  [[nodiscard]] Interval part(std::uint32_t number) const;
  [[nodiscard]] std::uint32_t part_of(std::uint32_t rank) const;

  Interval whole_;
  Leaders leaders_;
  std::uint32_t parts_, kept_;
};

// The interval that a rank is given, and from whom; the root begins with all ranks.
struct Given {
  Interval interval;
  std::uint32_t from;
  std::uint32_t tick;  // in which that send begins; 0 at the root
  std::uint32_t next;  // number of the first division of the interval by this rank
  bool root;
};

class IntervalTree {
 public:
  // Requires ranks >= 2, 2 <= radix and 1 <= send <= latency.
  IntervalTree(std::uint32_t ranks, std::uint32_t root, std::uint32_t radix, std::uint32_t send,
               std::uint32_t latency, Leaders leaders = Leaders::kFirst);

  [[nodiscard]] std::uint32_t steps() const;
  [[nodiscard]] Given given_to(std::uint32_t rank) const;
  // The tick in which the send of a turn of division `number` begins.
  [[nodiscard]] std::uint32_t tick(std::uint32_t number, std::uint32_t turn) const {
    return number * division_ticks() + turn * send_;
  }
  // Calls use(part, tick) for each part that the rank gives away, in the order of the ticks.
  template <typename Use>
  void for_each_part(const Given& given, Use use) const {
    Interval interval = given.interval;
    for (std::uint32_t number = given.next; interval.size > 1; ++number) {
      const Division division(interval, radix_, leaders_);
      for (std::uint32_t turn = 0; turn < division.turns(); ++turn) {
        use(division.given(turn), tick(number, turn));
      }
      interval = division.kept();
    }
  }

 private:
  [[nodiscard]] std::uint32_t division_ticks() const { return (radix_ - 2) * send_ + latency_; }

  std::uint32_t ranks_, root_, radix_, send_, latency_;
  Leaders leaders_;
};

// Returns the radix whose tree takes the fewest ticks, the smallest of these, if 0 is asked for;
// otherwise `radix`, but at most `ranks`. Requires ranks >= 2. Only radices are considered for
// which a rank gives away few enough parts for every collective's program. It is 2 for S = L.
[[nodiscard]] std::uint32_t tree_radix(std::uint32_t radix, std::uint32_t ranks, std::uint32_t send,
                                       std::uint32_t latency);

// Returns `parameters` with a binomial tree's: the default radix for S = L = 1.
[[nodiscard]] inline CollectiveParameters binomial_parameters(CollectiveParameters parameters) {
  parameters.radix = 0;
  parameters.send_ticks = parameters.latency_ticks = 1;
  return parameters;
}

}  // namespace espalier

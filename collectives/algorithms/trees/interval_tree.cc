#include "collectives/algorithms/trees/interval_tree.h"

#include "espalier/internal/base/assert.h"

namespace espalier {
namespace {

// The maximum number of parts that a rank gives away for a default radix. Every program has room
// for as many: a scatter's takes three of its 64 indices for each.
constexpr std::uint32_t kMaxDefaultParts = 20;

// Returns ceil(log_k p), and sets `last` to ceil(p / k^(divisions - 1)).
std::uint32_t divisions_of(std::uint32_t ranks, std::uint32_t radix, std::uint32_t& last) {
  std::uint32_t divisions = 1;
  for (last = ranks; last > radix; ++divisions) last = last / radix + (last % radix != 0 ? 1 : 0);
  return divisions;
}

}  // namespace

Division::Division(const Interval& whole, std::uint32_t radix, Leaders leaders)
    : whole_(whole), leaders_(leaders), parts_(whole.size < radix ? whole.size : radix), kept_(0) {
  kept_ = part_of(whole.leader);
}

// The first size % parts parts have one rank more.
Interval Division::part(std::uint32_t number) const {
  const std::uint32_t size = whole_.size / parts_, larger = whole_.size % parts_;
  const std::uint32_t first = whole_.first + number * size + (number < larger ? number : larger);
  return {first, size + (number < larger ? 1 : 0), first};
}

std::uint32_t Division::part_of(std::uint32_t rank) const {
  const std::uint32_t size = whole_.size / parts_, larger = whole_.size % parts_;
  const std::uint32_t offset = rank - whole_.first, in_larger = larger * (size + 1);
  return offset < in_larger ? offset / (size + 1) : larger + (offset - in_larger) / size;
}

Interval Division::given(std::uint32_t turn) const {
  if (turn >= kept_) return part(parts_ - 1 + kept_ - turn);
  Interval before = part(turn);
  if (leaders_ == Leaders::kNearest) before.leader = before.first + before.size - 1;
  return before;
}

Interval Division::kept() const {
  Interval kept = part(kept_);
  kept.leader = whole_.leader;
  return kept;
}

std::uint32_t Division::turn_of(std::uint32_t rank) const {
  const std::uint32_t number = part_of(rank);
  if (number == kept_) return turns();
  return number < kept_ ? number : parts_ - 1 + kept_ - number;
}

IntervalTree::IntervalTree(std::uint32_t ranks, std::uint32_t root, std::uint32_t radix,
                           std::uint32_t send, std::uint32_t latency, Leaders leaders)
    : ranks_(ranks), root_(root), radix_(radix), send_(send), latency_(latency), leaders_(leaders) {
  ESPALIER_ASSERT(ranks >= 2 && radix >= 2 && send >= 1 && send <= latency);
}

std::uint32_t IntervalTree::steps() const {
  std::uint32_t last = 0;
  const std::uint32_t divisions = divisions_of(ranks_, radix_, last);
  return (divisions - 1) * division_ticks() + (last - 2) * send_ + latency_;
}

Given IntervalTree::given_to(std::uint32_t rank) const {
  Interval interval{0, ranks_, root_};
  Given given{interval, root_, 0, 0, true};
  for (std::uint32_t number = 0; interval.leader != rank; ++number) {
    const Division division(interval, radix_, leaders_);
    const std::uint32_t turn = division.turn_of(rank);
    if (turn == division.turns()) {
      interval = division.kept();
      continue;
    }
    given = {division.given(turn), interval.leader, tick(number, turn), number + 1, false};
    interval = given.interval;
  }
  return given;
}

std::uint32_t tree_radix(std::uint32_t radix, std::uint32_t ranks, std::uint32_t send,
                         std::uint32_t latency) {
  if (radix != 0) return radix < ranks ? radix : ranks;
  std::uint32_t best = 2, best_steps = IntervalTree(ranks, 0, 2, send, latency).steps();
  for (std::uint32_t each = 3; each <= kMaxDefaultParts + 1 && each <= ranks; ++each) {
    std::uint32_t last = 0;
    if ((each - 1) * divisions_of(ranks, each, last) > kMaxDefaultParts) continue;
    const std::uint32_t steps = IntervalTree(ranks, 0, each, send, latency).steps();
    if (steps < best_steps) best = each, best_steps = steps;
  }
  return best;
}

}  // namespace espalier

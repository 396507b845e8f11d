// The greatest of several lower bounds, for every N: lines in N, of which the upper envelope
// counts.

#include <algorithm>
#include <vector>

#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {
namespace {

__extension__ using Wide = __int128;  // products of two coefficients and an N

// Whether `one` is above `other` as a line, before anything is rounded up, at N = blocks.
bool above(const LowerBound& one, const LowerBound& other, std::int64_t blocks) {
  const auto scaled = [blocks](const LowerBound& bound, std::int64_t by) {
    return (bound.a + Wide{bound.b} * blocks) * by;
  };
  return scaled(one, other.d) > scaled(other, one.d);
}

bool steeper(const LowerBound& one, const LowerBound& other) {
  return Wide{one.b} * other.d > Wide{other.b} * one.d;
}

// The first N from which on `one`, which is steeper, is above `other`; at most kMaxBlocks + 1.
std::int64_t first_above(const LowerBound& one, const LowerBound& other, std::int64_t from) {
  std::int64_t low = from, high = std::int64_t{kMaxBlocks} + 1;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (above(one, other, middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// A bound, and the first N for which its line is the highest.
struct Reign {
  const LowerBound* bound;
  std::int64_t first;
};

// The upper envelope from N = first on.
std::vector<Reign> envelope(const std::vector<LowerBound>& all, std::int64_t first) {
  std::vector<Reign> reigns;
  const LowerBound* best = &all.front();
  for (const LowerBound& bound : all) {
    const bool level = !above(bound, *best, first) && !above(*best, bound, first);
    if (above(bound, *best, first) || (level && steeper(bound, *best))) best = &bound;
  }
  std::int64_t from = first;
  while (from <= kMaxBlocks) {
    reigns.push_back({best, from});
    const LowerBound* next = nullptr;
    std::int64_t soonest = std::int64_t{kMaxBlocks} + 1;
    for (const LowerBound& bound : all) {
      if (!steeper(bound, *best) || !above(bound, *best, soonest)) continue;
      const std::int64_t begins = first_above(bound, *best, from);
      const bool sooner = begins < soonest;
      if (sooner || (next != nullptr && begins == soonest && above(bound, *next, begins))) {
        next = &bound;
        soonest = begins;
      }
    }
    if (next == nullptr) break;
    best = next;
    from = soonest;
  }
  return reigns;
}

}  // namespace

// Rounded up, a line may say no more than its neighbours wherever it is the highest: it goes. What
// reigns for longer than is looked through stays.
std::vector<LowerBound> greatest(const std::vector<LowerBound>& all, std::int64_t first) {
  constexpr std::int64_t kMostLookedAt = 4096;
  if (all.empty()) return {};
  std::vector<Reign> reigns = envelope(all, first);
  for (std::size_t at = 0; at + 1 < reigns.size();) {
    const std::int64_t end = reigns[at + 1].first;
    bool needed = end - reigns[at].first > kMostLookedAt;
    for (std::int64_t blocks = reigns[at].first; blocks < end && !needed; ++blocks) {
      std::int64_t others = 0;
      for (std::size_t other = 0; other < reigns.size(); ++other) {
        if (other != at) others = std::max(others, reigns[other].bound->steps(blocks));
      }
      needed = reigns[at].bound->steps(blocks) > others;
    }
    if (needed) {
      ++at;
      continue;
    }
    if (at > 0) {
      reigns.erase(reigns.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      reigns[1].first = reigns[0].first;
      reigns.erase(reigns.begin());
    }
  }
  std::vector<LowerBound> few;
  for (const Reign& reign : reigns) few.push_back(*reign.bound);
  return few;
}

}  // namespace espalier::verify

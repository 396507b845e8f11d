// The greatest of several lower bounds, for every N. A bound is a line in N, rounded up; the upper
// envelope of the lines decides.

#include <algorithm>
#include <vector>

#include "collectives/verify/bounds/wide.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {
namespace {

// Whether the line `one` is above the line `other`, before rounding up, at N = blocks.
bool above(const LowerBound& one, const LowerBound& other, std::int64_t blocks) {
  const auto scaled = [blocks](const LowerBound& bound, std::int64_t by) {
    return (bound.a + Wide{bound.b} * blocks) * by;
  };
  return scaled(one, other.d) > scaled(other, one.d);
}

bool steeper(const LowerBound& one, const LowerBound& other) {
  return Wide{one.b} * other.d > Wide{other.b} * one.d;
}

// Returns the first N at which `one`, the steeper line, is above `other`; at most kMaxBlocks + 1.
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
struct EnvelopeLine {
  const LowerBound* bound;
  std::int64_t first;
};

// Returns the upper envelope for N >= first.
std::vector<EnvelopeLine> envelope(const std::vector<LowerBound>& all, std::int64_t first) {
  std::vector<EnvelopeLine> lines;
  const LowerBound* best = &all.front();
  for (const LowerBound& bound : all) {
    const bool level = !above(bound, *best, first) && !above(*best, bound, first);
    if (above(bound, *best, first) || (level && steeper(bound, *best))) best = &bound;
  }
  std::int64_t from = first;
  while (from <= kMaxBlocks) {
    lines.push_back({best, from});
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
  return lines;
}

}  // namespace

// After rounding up, a line can be no greater than other lines everywhere where it is the highest.
// Then it is left out. A line that is the highest for more than kMaxExamined N is kept unexamined.
std::vector<LowerBound> greatest(const std::vector<LowerBound>& all, std::int64_t first) {
  constexpr std::int64_t kMaxExamined = 4096;
  if (all.empty()) return {};
  std::vector<EnvelopeLine> lines = envelope(all, first);
  for (std::size_t i = 0; i + 1 < lines.size();) {
    const std::int64_t end = lines[i + 1].first;
    bool needed = end - lines[i].first > kMaxExamined;
    for (std::int64_t blocks = lines[i].first; blocks < end && !needed; ++blocks) {
      std::int64_t others = 0;
      for (std::size_t other = 0; other < lines.size(); ++other) {
        if (other != i) others = std::max(others, lines[other].bound->steps(blocks));
      }
      needed = lines[i].bound->steps(blocks) > others;
    }
    if (needed) {
      ++i;
      continue;
    }
    if (i > 0) {
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      lines[1].first = lines[0].first;
      lines.erase(lines.begin());
    }
  }
  std::vector<LowerBound> few;
  few.reserve(lines.size());
  for (const EnvelopeLine& line : lines) few.push_back(*line.bound);
  return few;
}

}  // namespace espalier::verify

#include "planner/choose/sizes.h"

#include <algorithm>
#include <bit>

#include "base/try.h"
#include "espalier/internal/base/assert.h"

namespace espalier::planner {
namespace {

constexpr unsigned kWideStep = 4;  // powers of two between sizes that are ranked in any case
// A crossover is exact to this part of its size.
constexpr std::uint64_t kCrossoverPart = 32;

}  // namespace

Sizes::Sizes(const Choice& choice)
    : choice_(&choice), element_(std::max(1u, element_bytes(choice.request().op))) {}

Result<Sizes> Sizes::make(const Choice& choice, std::uint64_t most) {
  ESPALIER_ASSERT(most >= 1);
  Sizes sizes(choice);
  const auto last = static_cast<unsigned>(std::bit_width(most) - 1);
  unsigned before = std::min(last, static_cast<unsigned>(std::bit_width(sizes.element_ - 1)));
  ESPALIER_TRY(sizes.rank(before));
  while (before < last) {
    const unsigned next = std::min(last, before + kWideStep);
    ESPALIER_TRY(sizes.rank(next));
    ESPALIER_TRY(sizes.refine(before, next));
    before = next;
  }
  return sizes;
}

// A power of two, or the next number of whole elements.
std::uint64_t Sizes::bytes_of(unsigned power) const {
  ESPALIER_ASSERT(power < 64);
  return ((std::uint64_t{1} << power) + element_ - 1) / element_ * element_;
}

Result<void> Sizes::rank(unsigned power) {
  ESPALIER_TRY_TO(const auto ranking, choice_->rank(bytes_of(power)));
  Times& times = times_[power];
  times.assign(choice_->candidates().size(), predict::kMaxPrediction);
  for (const Estimate& one : ranking.estimates) times[one.candidate] = one.time;
  best_of_[power] = ranking.best().candidate;
  ESPALIER_ASSERT(best_of_[power] < times.size());
  return {};
}

Result<void> Sizes::refine(unsigned low, unsigned high) {
  ESPALIER_ASSERT(low <= high && best_of_.count(low) == 1 && best_of_.count(high) == 1);
  if (high - low < 2 || best_of_.at(low) == best_of_.at(high)) return {};
  const unsigned middle = (low + high) / 2;
  if (auto ranked = rank(middle); !ranked) return ranked;
  if (auto refined = refine(low, middle); !refined) return refined;
  return refine(middle, high);
}

Result<std::uint64_t> Sizes::crossover(std::size_t from, std::size_t to, std::uint64_t low,
                                       std::uint64_t high) const {
  ESPALIER_ASSERT(low <= high && from != to);
  while (high - low > std::max(element_, high / kCrossoverPart)) {
    const std::uint64_t middle = (low + high) / 2 / element_ * element_;
    ESPALIER_ASSERT(low < middle && middle < high);
    ESPALIER_TRY_TO(const auto after, choice_->predict(to, middle));
    ESPALIER_TRY_TO(const auto before, choice_->predict(from, middle));
    (after.time <= before.time ? high : low) = middle;
  }
  return high;
}

Result<std::vector<SizeRow>> Sizes::rows(std::uint64_t percent) const {
  std::vector<SizeRow> rows;
  std::uint64_t before = 0;  // the last size of the row before
  for (auto first = times_.begin(); first != times_.end();) {
    // The candidate that serves the longest run of sizes; of equal ones, the one with the least
    // sum of ratios to the best.
    auto end_of_longest = first;
    std::size_t longest = 0;
    predict::Picoseconds least = 0;
    for (std::size_t candidate = 0; candidate < first->second.size(); ++candidate) {
      predict::Picoseconds sum = 0;
      auto end = first;
      for (; end != times_.end(); ++end) {
        const predict::Picoseconds best = end->second[best_of_.at(end->first)];
        const predict::Picoseconds time = end->second[candidate];
        if (time == predict::kMaxPrediction ||
            time > best + predict::times(best / 100 + 1, percent)) {
          break;
        }
        sum += time / (best / 1000 + 1);
      }
      const bool is_longer = std::distance(first, end) > std::distance(first, end_of_longest);
      if (is_longer || (end == end_of_longest && end != first && sum < least)) {
        end_of_longest = end;
        longest = candidate;
        least = sum;
      }
    }
    // Each size has a best candidate, which serves at least this size.
    ESPALIER_ASSERT(end_of_longest != first);
    std::uint64_t from_bytes = 0;
    if (!rows.empty()) {
      ESPALIER_TRY_TO(from_bytes,
                      crossover(rows.back().candidate, longest, before, bytes_of(first->first)));
    }
    ESPALIER_ASSERT(rows.empty() || rows.back().from_bytes < from_bytes);
    rows.push_back({from_bytes, longest});
    before = bytes_of(std::prev(end_of_longest)->first);
    first = end_of_longest;
  }
  return rows;
}

}  // namespace espalier::planner

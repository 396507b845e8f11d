#include "collectives/verify/properties/rank_sets.h"

#include <algorithm>
#include <iterator>

namespace espalier::verify {
namespace {

// Sets of at most this many intervals are combined again, because a lookup takes longer.
constexpr std::size_t kFewIntervals = 8;

}  // namespace

RankSet RankSets::intern(std::vector<Interval> set) {
  if (set.size() == 1) return range(set[0].first, set[0].second);
  const auto [entry, fresh] =
      numbers_.try_emplace(std::move(set), kSeveral + static_cast<RankSet>(sets_.size()));
  if (fresh) sets_.push_back(&entry->first);
  return entry->second;
}

Join join_of(const Program& common) {
  if (common.collective == Collective::kBarrier) return Join::kUnion;
  return common.needs_commutative ? Join::kDisjoint : Join::kOrdered;
}

std::string RankSets::why_not_combined(RankSet left, RankSet right, Join join) const {
  return "it combines " + name(left) + " (left) with " + name(right) + " (right); " +
         (join == Join::kOrdered ? "the left must end just before the right begins"
                                 : "no rank may count twice");
}

RankSet RankSets::combine(RankSet left, RankSet right, Join join) {
  if (!is_range(left) || !is_range(right)) return combine_several(left, right, join);
  const Interval a = interval(left), b = interval(right);
  if (std::uint64_t{a.second} + 1 == b.first) return range(a.first, b.second);
  if (join == Join::kOrdered) return kNone;
  if (std::uint64_t{b.second} + 1 == a.first) return range(b.first, a.second);
  const bool apart = a.second < b.first || b.second < a.first;
  if (apart) return intern({std::min(a, b), std::max(a, b)});
  if (join != Join::kUnion) return kNone;
  return range(std::min(a.first, b.first), std::max(a.second, b.second));
}

RankSet RankSets::combine_several(RankSet left, RankSet right, Join join) {
  const auto intervals = [this](RankSet set) {
    return is_range(set) ? std::vector<Interval>{interval(set)} : several(set);
  };
  const std::vector<Interval> a = intervals(left), b = intervals(right);
  if (join == Join::kOrdered && a.back().second + 1 != b.front().first) return kNone;
  const bool kept = a.size() + b.size() > kFewIntervals;
  if (kept) {
    const auto known = combined_.find({left, right, join});
    if (known != combined_.end()) return known->second;
  }
  intervals_read_ += static_cast<std::int64_t>(a.size() + b.size()) - 2;
  std::vector<Interval> all;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  std::vector<Interval> merged;
  bool allowed = true;
  for (const Interval& next : all) {
    const bool twice = !merged.empty() && next.first <= merged.back().second;
    allowed = allowed && (!twice || join == Join::kUnion);
    if (!merged.empty() && next.first <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, next.second);
    } else {
      merged.push_back(next);
    }
  }
  const RankSet set = allowed ? intern(std::move(merged)) : kNone;
  if (kept) combined_[{left, right, join}] = set;
  return set;
}

std::string RankSets::name(RankSet set) const {
  if (set < 0) return "nothing";
  const std::vector<Interval> intervals =
      is_range(set) ? std::vector<Interval>{interval(set)} : several(set);
  const bool one = intervals.size() == 1 && intervals[0].first == intervals[0].second;
  std::string text = one ? "rank" : "ranks";
  for (const auto& [first, last] : intervals) {
    text += (&first == &intervals[0].first ? " " : ", ") + std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
  }
  return text;
}

}  // namespace espalier::verify

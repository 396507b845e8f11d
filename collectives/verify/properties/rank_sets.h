#pragma once
// Sets of ranks: whose inputs a block combines. Internal to collectives/verify.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "espalier/collectives/schedule/program.h"

namespace espalier::verify {

// The condition for combining two sets of ranks.
enum class Join : std::uint8_t {
  kOrdered,   // left must end just before right begins
  kDisjoint,  // no rank may be in both
  kUnion,     // none: in a barrier, the ranks heard from
};
[[nodiscard]] Join join_of(const Program& common);

// The number of a set of ranks. Equal sets have equal numbers.
using RankSet = std::int64_t;

// Sets of ranks, as ascending intervals.
class RankSets {
 public:
  using Interval = std::pair<std::uint32_t, std::uint32_t>;  // first, last
  static constexpr RankSet kNone = -1;
  // The set {first .. last}; ranks are below 2^30.
  [[nodiscard]] static RankSet range(std::uint32_t first, std::uint32_t last) {
    return static_cast<RankSet>(first) << 31 | last;
  }
  // Returns left (+) right; kNone if `join` forbids it.
  RankSet combine(RankSet left, RankSet right, Join join);
  // Intervals read so far to build new sets, minus one per set. Time and memory grow with this
  // number.
  [[nodiscard]] std::int64_t intervals_read() const { return intervals_read_; }
  [[nodiscard]] std::string name(RankSet set) const;  // "ranks 0-3, 5"
  // Returns the reason why combine() gave kNone, for a counterexample.
  [[nodiscard]] std::string why_not_combined(RankSet left, RankSet right, Join join) const;

 private:
  static constexpr RankSet kSeveral =
      RankSet{1} << 62;  // a set of several intervals: this plus its position in sets_
  [[nodiscard]] static bool is_range(RankSet set) { return set < kSeveral; }
  [[nodiscard]] static Interval interval(RankSet range) {
    return {static_cast<std::uint32_t>(range >> 31),
            static_cast<std::uint32_t>(range & 0x7fffffff)};
  }
  [[nodiscard]] const std::vector<Interval>& several(RankSet set) const {
    return *sets_[static_cast<std::size_t>(set - kSeveral)];
  }
  [[nodiscard]] RankSet combine_several(RankSet left, RankSet right, Join join);
  RankSet intern(std::vector<Interval> set);
  std::map<std::vector<Interval>, RankSet> numbers_;
  std::vector<const std::vector<Interval>*> sets_;                  // keys of numbers_
  std::map<std::tuple<RankSet, RankSet, Join>, RankSet> combined_;  // of many intervals
  std::int64_t intervals_read_ = 0;
};

}  // namespace espalier::verify

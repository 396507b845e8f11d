#pragma once
// Point 7: what each place holds, step by step. Internal to collectives/verify.

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/verify/check.h"

namespace espalier::verify {

// Which two sets of ranks may be combined.
enum class Join : std::uint8_t {
  kOrdered,   // left must end just before right begins
  kDisjoint,  // none twice
  kUnion,     // any: a barrier's, who has been heard of
};
[[nodiscard]] Join join_of(const Program& common);

// A set of ranks, by number: the same set has the same number.
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
  // left followed by right (left (+) right). kNone: what `join` forbids.
  RankSet combine(RankSet left, RankSet right, Join join);
  // Intervals read so far to make new sets, minus one per set: what time and memory grow with.
  [[nodiscard]] std::int64_t intervals_read() const { return intervals_read_; }
  [[nodiscard]] std::string name(RankSet set) const;  // "ranks 0-3, 5"
  // Why combine() gave kNone, for a counterexample.
  [[nodiscard]] std::string why_not_combined(RankSet left, RankSet right, Join join) const;

 private:
  static constexpr RankSet kSeveral = RankSet{1} << 62;  // of several intervals: plus a position
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

// Whether the sets take more than the options allow (too_large).
[[nodiscard]] Finding check_sets(const Case& at, const RankSets& sets);

// What the collective must give.
class Wanted {
 public:
  explicit Wanted(const Program& common) : program_(common) {}
  // The segments of the node's output that must hold a result: first, end.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> segments(std::uint32_t node);
  // Whose data that of `segment` must combine. In an all-to-all: what they have for `node`.
  [[nodiscard]] RankSet ranks(std::uint32_t node, std::int64_t segment) const;

 private:
  OwnedProgram program_;  // of the node asked for, as far as buffer_extent() looks
};

// A block of memory.
struct Value {
  RankSet ranks = RankSets::kNone;        // whose inputs it combines; kNone: undefined
  std::int64_t segment = -1, block = -1;  // of these inputs: in an all-to-all, for whom
};
// The counterexample of an output block that ends as `value` instead of the data of `wanted`.
[[nodiscard]] Counterexample wrong_result(const Case& at, const RankSets& sets, std::uint32_t node,
                                          std::int64_t segment, std::int64_t block,
                                          const Value& value, RankSet wanted);

// The counterexample of a rank that ends a barrier having heard of `heard` only.
[[nodiscard]] Counterexample not_heard(const Case& at, const RankSets& sets, std::uint32_t node,
                                       RankSet heard);

// Follows the data of schedules of one group; the sets are shared by all N.
class DataFlow {
 public:
  // In the order of a lock-step run. Where the hazards are absent and the messages match, every run
  // reads and writes in that order, so what holds here holds under any drift.
  [[nodiscard]] Finding check(const Case& at);

 private:
  struct Memory {
    std::vector<Value> output, scratch;
    RankSet heard = RankSets::kNone;  // barrier: of whom
  };
  [[nodiscard]] Value& memory(const Case& at, std::uint32_t node, const PlaceAt& place);
  [[nodiscard]] Finding read(const Case& at, std::uint32_t node, const Instance& reader,
                             const PlaceAt& place, Value& value);
  // All blocks of the place's run.
  [[nodiscard]] Finding read_run(const Case& at, std::uint32_t node, const Instance& reader,
                                 const PlaceAt& place, std::vector<Value>& values);
  void write(const Case& at, std::uint32_t node, const PlaceAt& place, Value value);
  [[nodiscard]] Finding operate(const Case& at, std::uint32_t node, const Instance& operation);
  void clear(const Case& at);
  [[nodiscard]] Finding check_results(const Case& at);
  [[nodiscard]] Finding check_barrier(const Case& at);
  [[nodiscard]] Finding check_result(const Case& at, std::uint32_t node, std::int64_t segment,
                                     std::int64_t block, RankSet wanted);
  RankSets sets_;
  std::vector<Memory> memory_;
};

}  // namespace espalier::verify

#pragma once
// Point 7: what each place holds, step by step. Internal to collectives/verify.

#include <cstdint>
#include <unordered_map>
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

// Sets of ranks, as ascending intervals, each kept once and named by a number.
class RankSets {
 public:
  using Interval = std::pair<std::uint32_t, std::uint32_t>;  // first, last
  // The set {first .. last}.
  std::int32_t range(std::uint32_t first, std::uint32_t last);
  // left followed by right (left (+) right). -1: what `join` forbids.
  std::int32_t combine(std::int32_t left, std::int32_t right, Join join);
  // Intervals read so far to make new sets, but for one a set: what time and memory go by.
  [[nodiscard]] std::int64_t intervals_read() const { return intervals_read_; }
  [[nodiscard]] std::string name(std::int32_t set) const;  // "ranks 0-3, 5"
  // Why combine() gave -1, for a counterexample.
  [[nodiscard]] std::string why_not_combined(std::int32_t left, std::int32_t right,
                                             Join join) const;

 private:
  std::int32_t intern(std::vector<Interval> set);
  std::vector<std::vector<Interval>> sets_;
  std::unordered_map<std::uint64_t, std::int32_t> ranges_;  // sets of one interval
  std::unordered_map<std::string, std::int32_t> numbers_;   // the others
  std::unordered_map<std::uint64_t, std::int32_t> combined_;
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
  [[nodiscard]] std::int32_t ranks(RankSets& sets, std::uint32_t node, std::int64_t segment) const;

 private:
  OwnedProgram program_;  // of the node asked for, as far as buffer_extent() looks
};

// A block of memory.
struct Value {
  std::int32_t ranks = -1;                // whose inputs it combines; -1: undefined
  std::int64_t segment = -1, block = -1;  // of these inputs: in an all-to-all, for whom
};
// The counterexample of an output block that ends as `value` instead of the data of `wanted`.
[[nodiscard]] Counterexample wrong_result(const Case& at, const RankSets& sets, std::uint32_t node,
                                          std::int64_t segment, std::int64_t block,
                                          const Value& value, std::int32_t wanted);

// Follows the data of schedules of one group; the sets are shared by all N.
class DataFlow {
 public:
  // In the order of a lock-step run. Where the hazards are absent and the messages match, every run
  // reads and writes in that order, so what holds here holds under any drift.
  [[nodiscard]] Finding check(const Case& at);

 private:
  struct Memory {
    std::vector<Value> output, scratch;
    std::int32_t heard = -1;  // barrier: of whom
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
                                     std::int64_t block, std::int32_t wanted);
  RankSets sets_;
  std::vector<Memory> memory_;
};

}  // namespace espalier::verify

#pragma once
// Property data flow: every result is the exact combination of exactly the right inputs, and every
// slot holds the block that is read from it. Internal to collectives/verify.

#include <cstdint>
#include <vector>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/expected_results.h"
#include "collectives/verify/properties/rank_sets.h"
#include "collectives/verify/report/counterexample.h"

namespace espalier::verify {

// Whether the sets take more than the options allow (too_large).
[[nodiscard]] Finding check_sets(const ExpandedSchedule& schedule, const RankSets& sets);

// A block of memory.
struct Value {
  RankSet ranks = RankSets::kNone;        // whose inputs it combines; kNone: undefined
  std::int64_t segment = -1, block = -1;  // of these inputs: in an all-to-all, for whom
};
// The counterexample of an output block that ends as `value` instead of the data of `wanted`.
[[nodiscard]] Counterexample wrong_result(const ExpandedSchedule& schedule, const RankSets& sets,
                                          std::uint32_t node, std::int64_t segment,
                                          std::int64_t block, const Value& value, RankSet expected);

// The counterexample of a rank that ends a barrier having heard of `heard` only.
[[nodiscard]] Counterexample not_heard(const ExpandedSchedule& schedule, const RankSets& sets,
                                       std::uint32_t node, RankSet heard);

// Follows the data of schedules of one group; the sets are shared by all N.
class DataFlow {
 public:
  // In the order of a lock-step run. Where the hazards are absent and the messages match, every run
  // reads and writes in that order, so what holds here holds under any drift.
  [[nodiscard]] Finding check(const ExpandedSchedule& schedule);

 private:
  struct Memory {
    std::vector<Value> output, scratch;
    RankSet heard = RankSets::kNone;  // barrier: of whom
  };
  [[nodiscard]] Value& memory(const ExpandedSchedule& schedule, std::uint32_t node,
                              const PlaceAt& place);
  [[nodiscard]] Finding read(const ExpandedSchedule& schedule, std::uint32_t node,
                             const Instance& reader, const PlaceAt& place, Value& value);
  // All blocks of the place's run.
  [[nodiscard]] Finding read_run(const ExpandedSchedule& schedule, std::uint32_t node,
                                 const Instance& reader, const PlaceAt& place,
                                 std::vector<Value>& values);
  void write(const ExpandedSchedule& schedule, std::uint32_t node, const PlaceAt& place,
             Value value);
  [[nodiscard]] Finding operate(const ExpandedSchedule& schedule, std::uint32_t node,
                                const Instance& operation);
  void clear(const ExpandedSchedule& schedule);
  [[nodiscard]] Finding check_results(const ExpandedSchedule& schedule);
  [[nodiscard]] Finding check_barrier(const ExpandedSchedule& schedule);
  [[nodiscard]] Finding check_result(const ExpandedSchedule& schedule, std::uint32_t node,
                                     std::int64_t segment, std::int64_t block, RankSet expected);
  RankSets sets_;
  std::vector<Memory> memory_;
};

}  // namespace espalier::verify

#pragma once
// Property data flow: every result is the exact combination of exactly the right inputs, and every
// slot holds the block that is read from it. Internal to collectives/verify.

#include <cstdint>
#include <vector>

#include "collectives/verify/properties/counterexample.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/expected_results.h"
#include "collectives/verify/properties/rank_sets.h"

namespace espalier::verify {

// Checks the size of the sets against the limits of VerifyOptions (too_large).
[[nodiscard]] Finding check_sets(const ExpandedSchedule& schedule, const RankSets& sets);

// The content of a block of memory.
struct Value {
  RankSet ranks = RankSets::kNone;  // the ranks whose inputs it combines; kNone: undefined
  std::int64_t segment = -1,
               block = -1;  // of these inputs; in an all-to-all the segment is the destination
};
// Returns the counterexample of an output block whose final content is `value` instead of the data
// of the ranks `expected`.
[[nodiscard]] Counterexample wrong_result(const ExpandedSchedule& schedule, const RankSets& sets,
                                          std::uint32_t node, std::int64_t segment,
                                          std::int64_t block, const Value& value, RankSet expected);

// Returns the counterexample of a rank that leaves a barrier after hearing from `heard` only.
[[nodiscard]] Counterexample not_heard(const ExpandedSchedule& schedule, const RankSets& sets,
                                       std::uint32_t node, RankSet heard);

// Follows the data through a lock-step run, one N after the other. All N share the sets.
class DataFlow {
 public:
  // Checks one N. Requires that hazards are absent and messages match. Then every run reads and
  // writes in the order of the lock-step run, so the result holds under any timing skew.
  [[nodiscard]] Finding check(const ExpandedSchedule& schedule);

 private:
  struct Memory {
    std::vector<Value> output, scratch;
    RankSet heard = RankSets::kNone;  // barrier: the ranks heard from
  };
  [[nodiscard]] Value& memory(const ExpandedSchedule& schedule, std::uint32_t node,
                              const OperandAt& operand);
  [[nodiscard]] Finding read(const ExpandedSchedule& schedule, std::uint32_t node,
                             const Instance& reader, const OperandAt& operand, Value& value);
  // Reads all segments of the operand.
  [[nodiscard]] Finding read_operand(const ExpandedSchedule& schedule, std::uint32_t node,
                                     const Instance& reader, const OperandAt& operand,
                                     std::vector<Value>& values);
  void write(const ExpandedSchedule& schedule, std::uint32_t node, const OperandAt& operand,
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

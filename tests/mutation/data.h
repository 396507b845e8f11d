#pragma once
// What the interpreter's memory holds, and what each collective must leave there.

#include <cstdint>

#include "tests/mutation/interpreter.h"

namespace espalier::mutation {

// Whose data a block of memory is the combination of, in order: a rank's number + 1 a nibble, the
// first combined in the highest. Empty: nothing of use. In a barrier a bit for each rank heard of.
struct Data {
  std::uint64_t ranks = 0;
  std::uint32_t length = 0;               // nibbles; of a barrier 1
  std::int64_t segment = -1, block = -1;  // in an all-to-all the segment is for whom it is
};

[[nodiscard]] inline bool is_all_to_all(const Play& play) {
  return play.collective == espalier_Collective_ALL_TO_ALL;
}
[[nodiscard]] inline bool is_barrier(const Play& play) {
  return play.collective == espalier_Collective_BARRIER;
}

// A block of the rank's own input.
[[nodiscard]] Data own_input(const Play& play, std::size_t rank, std::int64_t segment,
                             std::int64_t block);
// left (+) right; empty if that is nothing of use.
[[nodiscard]] Data combined(const Play& play, const Data& left, const Data& right);
// Whether a result is `right`; in rank order where that matters. Neither's block is looked at.
[[nodiscard]] bool same_result(const Play& play, const Data& result, const Data& right);
// What the collective must leave in a segment of a rank's output.
[[nodiscard]] Data wanted(const Play& play, std::int64_t rank, std::int64_t segment);

}  // namespace espalier::mutation

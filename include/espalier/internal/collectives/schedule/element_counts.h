#pragma once
// The number of elements of a collective: one count, or one count for each rank. Freestanding.

#include <cstdint>

#include "espalier/internal/base/limits.h"
#include "espalier/internal/collectives/schedule/enumerations.h"

namespace espalier {

#if ESPALIER_UNEQUAL_COUNTS
inline namespace ESPALIER_PROGRAM_BUILD {
// Converts from a number of elements: of the whole message, or of each rank's part
// (counts_per_rank). With the second constructor every rank's part has its own count, which may be
// 0. All ranks must give the same counts, unless `own_only`.
struct ElementCounts {
  // NOLINTNEXTLINE(google-explicit-constructor): a number is the usual case.
  constexpr ElementCounts(std::uint64_t each) : count(each) {}
  // `all`: `length` counts, which must be unequal_entries(); `room`: for unequal_offsets() numbers,
  // which make_layout() writes. Both belong to the caller and must last as long as the layout: in
  // Machine::start(), until the collective is complete.
  constexpr ElementCounts(const std::uint64_t* all, std::uint64_t length, std::uint64_t* room)
      : elements(all), entries(length), offsets(room) {}

  // Whether each rank's part has its own count. If all of them are equal, the collective is still
  // another one than that of a single number: ranks that mix the two get kMismatch.
  [[nodiscard]] constexpr bool unequal() const { return entries != 0; }

  std::uint64_t count = 0;
  // elements[r] belongs to rank r's part. All-to-all: elements[o * ranks + d] is what rank o sends
  // to rank d.
  const std::uint64_t* elements = nullptr;
  std::uint64_t entries = 0;
  std::uint64_t* offsets = nullptr;
  // Whether each rank gives only the counts that concern its own messages, and otherwise 0. The
  // program must have one block and direct messages only. Ranks then do not compare all counts; a
  // message whose ends differ is still a kMismatch.
  bool own_only = false;
};
}  // namespace ESPALIER_PROGRAM_BUILD

// Scratch slots first .. end-1, which operands with several segments use. They are one piece of
// memory, which begins at slot `first`.
struct SlotGroup {
  std::uint32_t first = 0, end = 0;
  // 1 + the segment of slot `first`: the slots hold consecutive segments without gaps (after the
  // last one, the first). 0: every operand begins with slot `first`, with any segment.
  std::uint32_t first_segment = 0;
};
// The groups of a program; other slots hold one segment each.
struct SlotGroups {
  static constexpr std::uint32_t kMax = 4;  // groups of a program
  SlotGroup groups[kMax];
  std::uint32_t count = 0;
};

// Returns the number of counts that a collective of `ranks` ranks takes.
[[nodiscard]] constexpr std::uint64_t unequal_entries(Collective collective, std::uint32_t ranks) {
  return collective == Collective::kAllToAll ? std::uint64_t{ranks} * ranks : ranks;
}
// Returns the number of offsets that one rank's layout has: where each rank's part begins, and the
// end; in an all-to-all for the input and for the output.
[[nodiscard]] constexpr std::uint64_t unequal_offsets(Collective collective, std::uint32_t ranks) {
  return (collective == Collective::kAllToAll ? 2 : 1) * (std::uint64_t{ranks} + 1);
}
#else
// A number of elements: of the whole message, or of each rank's part (counts_per_rank).
using ElementCounts = std::uint64_t;
#endif

}  // namespace espalier

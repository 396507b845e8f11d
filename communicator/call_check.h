#pragma once
// The checks of a call before anything starts: each refusal is one line that names the argument and
// what would be right. Host only.

#include <cstdint>

#include "espalier/base/result.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/communicator.h"

namespace espalier::communicator {

// A rank among the ranks of a communicator.
struct Place {
  std::uint32_t rank = 0, ranks = 1;
};

// The extents of a call's buffers at one rank.
struct CallExtents {
  Extent input = Extent::kNothing, output = Extent::kNothing;
};

// Returns the call's count, or the largest of its counts.
[[nodiscard]] std::uint64_t largest_count(const Call& call);

// Returns the elements of a buffer of `extent` at `place`.
[[nodiscard]] std::uint64_t elements_of(Extent extent, const Call& call, const Place& place,
                                        bool is_input);

// Checks collective, root, type, operator and counts. Errors: what contradicts.
[[nodiscard]] Result<void> check_arguments(const Call& call, std::uint32_t ranks);

// Checks the memory of a call whose arguments are good. Errors: a null pointer; `send` without
// exactly the elements that the collective needs, except in place; `receive` with fewer; memory of
// the two that overlaps other than in place.
[[nodiscard]] Result<void> check_memory(const Call& call, const CallExtents& extents,
                                        const Place& place);

}  // namespace espalier::communicator

#pragma once
// N, the blocks of a segment: which numbers a schedule can have. Host only.

#include <cstdint>

#include "espalier/collectives/schedule/program.h"

namespace espalier::planner {

// Whether the block table cuts some message, so that N depends on the message's size.
[[nodiscard]] bool cuts_messages(const Program& program);

// The smallest N >= wanted (>= 1) that the block table and the residue allow; the only N there is
// where the table cuts no message.
[[nodiscard]] std::int64_t allowed_blocks(const Program& program, std::int64_t wanted);

}  // namespace espalier::planner

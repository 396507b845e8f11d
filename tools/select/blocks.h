#pragma once
// N, the blocks of a segment: which numbers a schedule can have, and an N as typed. Host only.

#include <cstdint>
#include <string>

#include "espalier/collectives/schedule/program.h"

namespace espalier::tools {

// Whether the block table cuts some message, so that N depends on the message's size.
[[nodiscard]] bool cuts_messages(const Program& program);

// The smallest N >= wanted (>= 1) that the block table and the residue allow; the only N there is
// where the table cuts no message.
[[nodiscard]] std::int64_t allowed_blocks(const Program& program, std::int64_t wanted);

// --blocks of a command that expands `program`, from 1 to `most`. Throws Failure (bad input) where
// `text` is not such a number, or no message of the schedule has that N; it says which N there are.
[[nodiscard]] std::int64_t chosen_blocks(const std::string& text, std::uint64_t most,
                                         const Program& program);

}  // namespace espalier::tools

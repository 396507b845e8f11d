#pragma once
// The default block table: the block length for each length of the whole message. Freestanding.

#include <cstdint>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

// Returns the table, with from_bytes ascending from 0; `count` is set to its length.
[[nodiscard]] const BlockRule* default_blocks(std::uint32_t& count);

}  // namespace espalier

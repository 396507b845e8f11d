#pragma once
// The default block table: how long a block is, by the length of the whole message. Freestanding.

#include <cstdint>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

// The table; `count` is its length. Ascending from_bytes, the first 0.
[[nodiscard]] const BlockRule* default_blocks(std::uint32_t& count);

}  // namespace espalier

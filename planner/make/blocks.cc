#include "planner/make/blocks.h"

#include <algorithm>

namespace espalier::planner {

bool cuts_messages(const Program& program) {
  bool cuts = false;
  for (std::uint32_t rule = 0; rule < program.blocks_count; ++rule) {
    cuts = cuts || program.blocks[rule].block_bytes != 0;
  }
  return cuts;
}

std::int64_t allowed_blocks(const Program& program, std::int64_t wanted) {
  const std::int64_t blocks = cuts_messages(program) ? wanted : 1;
  const std::int64_t mod = std::max<std::int64_t>(1, program.residue_mod);
  return blocks + ((program.residue - blocks) % mod + mod) % mod;
}

}  // namespace espalier::planner

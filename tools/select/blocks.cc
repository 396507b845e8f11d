#include "tools/select/blocks.h"

#include <algorithm>

#include "tools/common/failure.h"
#include "tools/common/numbers.h"

namespace espalier::tools {

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

std::int64_t chosen_blocks(const std::string& text, std::uint64_t most, const Program& program) {
  const auto blocks = static_cast<std::int64_t>(whole_number("--blocks", text, 1, most));
  if (allowed_blocks(program, blocks) == blocks) return blocks;
  const std::string first = std::to_string(allowed_blocks(program, 1));
  const std::string wrong =
      "--blocks " + std::to_string(blocks) + ": the schedule has no such N; expected ";
  if (!cuts_messages(program)) {
    bad_input(wrong + "N = " + first + ", the only one its block table gives");
  }
  bad_input(wrong + "N = " + std::to_string(program.residue) + " mod " +
            std::to_string(program.residue_mod) + ", such as " + first);
}

}  // namespace espalier::tools

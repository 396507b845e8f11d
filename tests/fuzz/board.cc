// Fuzz target: any text is refused as a board's description with one line, or is one whose values
// are in their ranges and whose defaults are filled in.

#include "planner/board/board.h"

#include <algorithm>

#include "firmware/image/image.h"
#include "planner/board/board_limits.h"
#include "tests/fuzz/memory_file.h"

namespace espalier::fuzz {
namespace {

void examine(const board::BoardFile& file) {
  expect(!file.name().empty() && file.name().size() < kBoardNameBytes, "a board has a name");
  const auto* fields = file.limits().GetReflection();
  for (const planner::Limit& limit : planner::limits_of_boards()) {
    const auto* field = board::BoardFile::Limits::descriptor()->FindFieldByName(limit.name);
    const std::uint32_t value = fields->GetUInt32(file.limits(), field);
    expect(value >= std::min(limit.normal, 1u) && value <= limit.most,
           "limits are in their ranges");
  }
  expect(static_cast<std::uint32_t>(file.link_size()) <= file.limits().links(),
         "the links keep their limit");
  expect(!file.has_flash() || file.flash().bytes() / file.flash().block_bytes() >= 6,
         "a flash has room");
}

}  // namespace

void run(Input& input) {
  const MemoryFile file(input.rest(), input.left());
  const auto board = planner::read_board(file.path());
  if (board) {
    examine(*board);
  } else {
    expect(board.error().message.find('\n') == std::string::npos, "a refusal is one line");
  }
}

}  // namespace espalier::fuzz

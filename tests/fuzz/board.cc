// Fuzz target: any text is refused as a board's description with one line, or is one whose values
// are in their ranges and whose defaults are filled in.

#include "tools/image/board.h"

#include <algorithm>

#include "firmware/image/image.h"
#include "tests/fuzz/memory_file.h"
#include "tools/common/failure.h"
#include "tools/image/board_limits.h"

namespace espalier::fuzz {
namespace {

void examine(const board::BoardFile& file) {
  expect(!file.name().empty() && file.name().size() < kBoardNameBytes, "a board has a name");
  const auto* fields = file.limits().GetReflection();
  for (const tools::Limit& limit : tools::limits_of_boards()) {
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
  try {
    examine(tools::read_board(file.path()));
  } catch (const tools::Failure& failure) {
    expect(failure.exit_status == tools::kBadInput && failure.line.find('\n') == std::string::npos,
           "a refusal is one line");
  }
}

}  // namespace espalier::fuzz

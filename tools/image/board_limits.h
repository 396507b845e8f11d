#pragma once
// What a board's firmware holds, `limits` of its board.textproto, and whether a program is within.
// Host only.

#include <cstdint>
#include <span>
#include <string>

#include "board.pb.h"
#include "collectives/schedule/program.h"

namespace espalier::tools {

// A field of the limits by its name in proto/board.proto: what it is where a board does not say,
// and the most that it may be.
struct Limit {
  const char* name;
  std::uint32_t normal, most;
};
[[nodiscard]] std::span<const Limit> limits_of_boards();

// What of `program` is more than nodes built with `limits` (all fields given) hold, as in "has 39
// actions, of at most 16"; empty: nothing, and they load its descriptor.
[[nodiscard]] std::string beyond_limits(const board::BoardFile::Limits& limits,
                                        const Program& program);

}  // namespace espalier::tools

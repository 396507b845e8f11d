#pragma once
// The limits of a board's firmware (`limits` of its board.textproto), and whether a program keeps
// them. Host only.

#include <cstdint>
#include <span>

#include "board.pb.h"
#include "espalier/base/result.h"
#include "espalier/collectives/schedule/program.h"

namespace espalier::planner {

// A field of the limits by its name in proto/board.proto: its default and its maximum.
struct Limit {
  const char* name;
  std::uint32_t normal, most;
};
[[nodiscard]] std::span<const Limit> limits_of_boards();

// Checks that nodes built with `limits` (all fields given) load the descriptor of `program`. Error:
// how it exceeds them, such as "has 39 actions, of at most 16".
[[nodiscard]] Result<void> check_limits(const board::BoardFile::Limits& limits,
                                        const Program& program);

}  // namespace espalier::planner

#pragma once
// A board's description, read and checked: boards/NAME/board.textproto. Host only.

#include <string>

#include "board.pb.h"
#include "espalier/base/result.h"

namespace espalier::planner {

// Reads the file at `path`, a board's folder's board.textproto where it is a folder. Every default
// is filled in. Error: unreadable, no text of proto/board.proto, or a value out of range, naming
// file and line.
[[nodiscard]] Result<board::BoardFile> read_board(const std::string& path);

}  // namespace espalier::planner

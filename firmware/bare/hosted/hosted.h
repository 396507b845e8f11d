#pragma once
// board.h on a Linux host. Host only.

#include <string>

namespace espalier::board {

struct HostedOptions {
  std::string device;      // open_board_carrier's specification
  std::string flash;       // file
  std::string public_key;  // file; empty: any image
  bool takes_unsigned = false;
  std::string board = "mps2-an385";
  char** arguments = nullptr;  // of main(), for restart()
};

// Call before anything else of the board. False: `error` is one line.
[[nodiscard]] bool open_hosted(const HostedOptions& options, std::string& error);

}  // namespace espalier::board

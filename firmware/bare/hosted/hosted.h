#pragma once
// The board.h of a Linux host. Host only.

#include <string>

namespace espalier::board {

struct HostedOptions {
  std::string device;           // open_board_carrier's specification
  std::string flash;            // file
  std::string public_key;       // file; excludes takes_unsigned
  bool takes_unsigned = false;  // accepts any image
  std::string board = "mps2-an385";
  char** arguments = nullptr;  // of main(), for restart()
};

// Opens the flash and the device. Call before all functions of board.h. False and one line in
// `error`.
[[nodiscard]] bool open_hosted(const HostedOptions& options, std::string& error);

}  // namespace espalier::board

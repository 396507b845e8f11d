#pragma once
// The board.h of a Linux host. Host only.

#include <string>

#include "espalier/base/result.h"

namespace espalier::board {

struct HostedOptions {
  std::string device;           // open_board_carrier's specification
  std::string flash;            // file
  std::string public_key;       // file; excludes takes_unsigned
  std::string otp;              // file of one-time bits for the security counter; empty: none
  std::string link_key;         // file of the key of the links; empty: they have none
  bool takes_unsigned = false;  // accepts any image
  std::string board = "mps2-an385";
  char** arguments = nullptr;  // of main(), for restart()
};

// Opens the flash and the device. Call before all functions of board.h.
[[nodiscard]] Result<void> open_hosted(const HostedOptions& options);

}  // namespace espalier::board

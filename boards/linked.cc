// What the linker script says of the program: the part of firmware/bare/board.h that all boards
// share.

#include "firmware/bare/board.h"

extern "C" {
// Their addresses are sizes.
extern char ram_used[], ram_given[], code_used[];
}

namespace espalier::board {

const char* name() { return ESPALIER_BOARD_NAME; }

Memory memory() {
  return {reinterpret_cast<std::uint32_t>(ram_used), reinterpret_cast<std::uint32_t>(ram_given),
          reinterpret_cast<std::uint32_t>(code_used)};
}

}  // namespace espalier::board

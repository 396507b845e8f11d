#pragma once
// The bare-metal node. Its program is the same on every board.

namespace espalier::bare {

// Boots, prints the boot report, and serves the gateway. Called once. True: the board must restart.
// False: the carrier's frames are longer than the node's room; the console says so.
[[nodiscard]] bool run_node();

}  // namespace espalier::bare

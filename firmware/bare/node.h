#pragma once
// The bare-metal node. Its program is the same on every board.

namespace espalier::bare {

// Boots, prints the boot report, and serves the gateway. Returns when the board must restart.
// Called once.
void run_node();

}  // namespace espalier::bare

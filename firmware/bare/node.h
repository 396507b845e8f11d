#pragma once
// The bare-metal node: the same program on every board.

namespace espalier::bare {

// Boots, says so on the console, and serves the gateway until the board is to start again; returns
// then. Called once.
void run_node();

}  // namespace espalier::bare

#pragma once
// What a process inherits from its parent: open streams, ignored signals. Host only.

#include <vector>

namespace espalier {

// Call it first in main(). A closed descriptor of 0 to 2 is opened on /dev/null, the wrong way
// round: no other file gets its number, and writing to it still fails. SIGCHLD gets its default
// action: while a process ignores it, its children cannot be waited for.
void repair_inherited();

// Returns the signals that this process ignores, without SIGCHLD.
[[nodiscard]] std::vector<int> ignored_signals();

// Gives every signal its default action, or ignores it if it is in `ignored`. For a forked child
// that calls exec() next.
void reset_signals(const std::vector<int>& ignored);

// Whether the descriptor was opened for writing.
[[nodiscard]] bool is_writable(int descriptor);

}  // namespace espalier

#pragma once
// What a board's start-up code needs of the board, besides firmware/bare/board.h.

namespace espalier::startup {

// Makes board::print() work. Called first.
void begin_console();

// Ends the program: main() returned `status`, or the processor stopped (3). Called last.
[[noreturn]] void stop(int status);

}  // namespace espalier::startup

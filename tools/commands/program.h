#pragma once
// The espalier command without its main(), so that a test can run it in a child that starts no
// program.

namespace espalier::tools {

// Returns the exit status: 0 success; 1 a check failed (invalid schedule, wrong result); 2 bad
// input. A failure prints one line on stderr. The caller must return it from main() or pass it to
// exit().
[[nodiscard]] int run_program(int argc, char** argv);

}  // namespace espalier::tools

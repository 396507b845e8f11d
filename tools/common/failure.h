#pragma once
// How a command reports failure: it throws this; run_program() in tools/commands/program.cc catches
// it.

#include <string>
#include <utility>

namespace espalier::tools {

inline constexpr int kNegative = 1;  // a check failed: invalid schedule, wrong result
inline constexpr int kBadInput = 2;

struct Failure {
  int exit_status = kBadInput;
  std::string line;  // for stderr; one line
};

[[noreturn]] inline void bad_input(std::string line) { throw Failure{kBadInput, std::move(line)}; }
[[noreturn]] inline void negative(std::string line) { throw Failure{kNegative, std::move(line)}; }

}  // namespace espalier::tools

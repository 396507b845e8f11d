#pragma once
// How a command reports failure: it throws this; run_program() in tools/commands/program.cc catches
// it.

#include <string>
#include <type_traits>
#include <utility>

#include "base/one_line.h"
#include "espalier/base/result.h"

namespace espalier::tools {

inline constexpr int kNegative = 1;  // a check failed: invalid schedule, wrong result
inline constexpr int kBadInput = 2;

struct Failure {
  int exit_status = kBadInput;
  std::string line;  // for stderr; one line
};

[[noreturn]] inline void bad_input(std::string line) { throw Failure{kBadInput, std::move(line)}; }
[[noreturn]] inline void negative(std::string line) { throw Failure{kNegative, std::move(line)}; }

// Returns the result's value. Throws Failure (bad input) with its error in one line.
template <typename T>
T or_bad_input(Result<T> result) {
  if (!result) bad_input(one_line(result.error().message));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace espalier::tools

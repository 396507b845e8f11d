#pragma once
// Test helper: takes results apart so that a failure shows its message. Host only.

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "espalier/base/result.h"

namespace espalier {

// Returns the value of `result`. If there is none, throws an exception with the caller's file and
// line and the error's message: a test fails with it, any other program ends with it.
template <typename T>
T or_throw(Result<T> result, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!result) {
    throw std::runtime_error(std::string(file) + ':' + std::to_string(line) + ": " +
                             result.error().message);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// Returns the error's message; an empty string if there is a value.
template <typename T>
[[nodiscard]] std::string message_of(const Result<T>& result) {
  return result ? "" : result.error().message;
}

}  // namespace espalier

#pragma once
// The result of a host function that can fail: a value, or the reason why there is none. Host only:
// nodes return a Status. Needs Debian's package libexpected-dev.

#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include "espalier/base/status.h"  // refuses compilers below C++20

namespace espalier {

// Why a function failed.
struct Error {
  std::string message;  // one line: the fault, its place, the correct form
};

// A value or an error: `if (!result)` it failed and result.error() is the reason, otherwise *result
// is the value. Result<void> has no value.
template <typename T, typename E = Error>
using Result = tl::expected<T, E>;

// Makes the result of a function that fails: `return fail("...");`, or `return
// fail(other.error());` to pass on another function's error.
[[nodiscard]] inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}
template <typename E, typename = std::enable_if_t<!std::is_convertible_v<E, std::string>>>
[[nodiscard]] tl::unexpected<E> fail(E error) {
  return tl::unexpected<E>(std::move(error));
}

}  // namespace espalier

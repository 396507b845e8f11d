#pragma once
// The result of a part of the proof for every N. Internal to collectives/verify.

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

// The proof for every N does not apply, and why. No error was found.
struct Undecided {
  std::string reason;
};

// One of three: nothing wrong, an error, or undecided.
template <typename Error>
class [[nodiscard]] CheckResult {
 public:
  CheckResult() = default;
  CheckResult(Error error) : value_(std::move(error)) {}              // NOLINT: implicit
  CheckResult(Undecided undecided) : value_(std::move(undecided)) {}  // NOLINT: implicit
  CheckResult(std::optional<Error> found) {                           // NOLINT: implicit
    if (found) value_ = std::move(*found);
  }
  CheckResult(std::optional<Undecided> undecided) {  // NOLINT: implicit
    if (undecided) value_ = std::move(*undecided);
  }

  [[nodiscard]] bool passed() const { return std::holds_alternative<std::monostate>(value_); }
  // Null unless the check found an error.
  [[nodiscard]] const Error* error() const { return std::get_if<Error>(&value_); }
  // Null unless the check is undecided.
  [[nodiscard]] const Undecided* undecided() const { return std::get_if<Undecided>(&value_); }

 private:
  std::variant<std::monostate, Error, Undecided> value_;
};

using ProofResult = CheckResult<Counterexample>;

}  // namespace espalier::verify

#pragma once
// How the checks report an error. Internal to collectives/verify.

#include <cstdint>
#include <optional>
#include <string>

#include "collectives/verify/properties/expanded_schedule.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

// The result of a check: the first error that it found, or nothing.
using Finding = std::optional<Counterexample>;

// Returns a counterexample at `instance` of `node`. Without an instance (null) or a node (-1) the
// line does not name them. `text` says what is wrong and what would be right; the property, N,
// node, step, action, link and block are put before it.
[[nodiscard]] Counterexample found(Property property, const ExpandedSchedule& schedule,
                                   std::int64_t node, const Instance* instance,
                                   const std::string& text);
// Returns a finding that only says that the check would exceed the limits
// (Counterexample::too_large).
[[nodiscard]] Counterexample too_large(Property property, const ExpandedSchedule& schedule,
                                       std::int64_t node, const std::string& text);

}  // namespace espalier::verify

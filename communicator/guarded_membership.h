#pragma once
// A membership in a job that the program gave: its exceptions are errors. Host only.

#include <memory>

#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::communicator {

// Returns a membership that calls the functions of `given`. What does not change is asked for once,
// here. Error: one of these functions throws; the rank is not below the size.
[[nodiscard]] Result<std::shared_ptr<bootstrap::Bootstrap>> guard_membership(
    std::shared_ptr<bootstrap::Bootstrap> given);

}  // namespace espalier::communicator

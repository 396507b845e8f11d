#pragma once
// The communicator behind a handle of espalier.h, for tests. Host only.

#include "espalier/communicator.h"
#include "espalier/espalier.h"

namespace espalier::communicator {

// Makes a handle of `communicator`, which espalier_leave() frees.
[[nodiscard]] espalier_comm* make_handle(Communicator communicator);

}  // namespace espalier::communicator

#pragma once
// The cut of a message into the blocks of a schedule. Host only.

#include "espalier/base/result.h"
#include "espalier/collectives/schedule/program.h"
#include "planner/workload/reference.h"

namespace espalier::planner {

// Cuts the message into blocks; with `counts`, cuts the longest part of all ranks. Error: the
// program takes none of its size.
[[nodiscard]] Result<Layout> layout_of(const Program& program,
                                       const reference::ReferenceInput& what);

}  // namespace espalier::planner

#pragma once
// The placement of a schedule's ranks. Host only.

#include <optional>
#include <string>

#include "espalier/base/result.h"
#include "espalier/topology/topology.h"
#include "planner/make/plan.h"

namespace espalier::planner {

// Returns the embedding that the request asks for, by default the best one known; nothing: each
// rank is on the node of its number. `schedule` has its topology, algorithm and parameters. Error:
// it is for something else.
[[nodiscard]] Result<std::optional<topology::Embedding>> choose_embedding(
    const PlanRequest& request, const PlannedSchedule& schedule);

// "'NAME'" in a message; a path is shown as it was given.
[[nodiscard]] std::string quoted_name(const topology::Embedding& embedding);

}  // namespace espalier::planner

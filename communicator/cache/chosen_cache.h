#pragma once
// The choices that were made on this host, so that the candidates for a collective are ranked once
// and not by every rank of every job. Host only.

#include <functional>
#include <string>
#include <vector>

#include "collectives/schedule/selection.h"
#include "espalier/base/result.h"
#include "planner/choose/chosen_schedules.h"

namespace espalier::communicator {

// The schedules that a model chose for a collective, and for which messages.
struct KeptChoice {
  std::vector<planner::ChosenOrigin> origins;  // at least one
  std::vector<SelectionRow> rows;              // of several
};

// Returns the choice that the file `name` keeps (cache_file.h), if `is_good` of it. Otherwise calls
// `choose`, and keeps the result. While one process chooses, others that need the file wait. The
// name must tell all that the choice depends on, except for this binary. `wanted`: the request that
// all origins fulfil.
[[nodiscard]] Result<KeptChoice> obtain_choice(
    const std::string& name, const planner::PlanRequest& wanted,
    const std::function<bool(const KeptChoice&)>& is_good,
    const std::function<Result<KeptChoice>()>& choose);

}  // namespace espalier::communicator

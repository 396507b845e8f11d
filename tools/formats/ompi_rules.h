#pragma once
// Open MPI's dynamic rules, in the classic text form that its `tuned` component reads:
// docs/formats.md. Host only.

#include <string>
#include <vector>

#include "planner/choose/choice.h"

namespace espalier::tools::formats {

// Collectives that have rules.
[[nodiscard]] std::vector<Collective> ompi_collectives();

// Ranks the candidates of each collective, and writes a rule wherever the best of those that Open
// MPI has, too, is another one. The collective of `request` is not read. Throws Failure (bad
// input): Open MPI has none of the candidates, or as Choice.
[[nodiscard]] std::string write_ompi_rules(const planner::ChoiceRequest& request,
                                           const std::vector<Collective>& collectives);

}  // namespace espalier::tools::formats

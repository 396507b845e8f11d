#pragma once
// Proving a schedule file that was compiled. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/verify/verify.h"
#include "planner/progress.h"

namespace espalier::planner {

// Proves the schedule file `bytes` from these alone, and returns for which N: "every N". The links
// of the topology must carry the schedule if `hop_by_hop` or if routers have programs; otherwise
// the fabric routes. Throws Failure, with a line that calls the file `name`: the verdict is
// negative, or (bad input) the schedule is too large to verify. `bytes` are then gone: they may be
// many, and are not copied.
[[nodiscard]] std::string prove_compiled(const std::string& name, std::vector<std::uint8_t>& bytes,
                                         bool hop_by_hop, const ShowProgress& progress);

// The N that a valid schedule is proven for: "every N", "every N up to 21", ...
[[nodiscard]] std::string proven_for(const Program& program, const verify::Verdict& verdict);

}  // namespace espalier::planner

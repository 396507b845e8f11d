#pragma once
// Proving a schedule file that was compiled. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/collectives/verify/verify.h"
#include "planner/progress.h"

namespace espalier::planner {

// The verdict on a schedule file.
struct FileVerdict {
  std::string wrong;       // why it is not valid; empty: it is
  std::string proven_for;  // of a valid one: "every N"
};
// Proves the schedule file `bytes` from these alone. The links of the topology must carry the
// schedule if `hop_by_hop` or if routers have programs; otherwise the fabric routes. Errors, in
// which the file is called `name`: it is not a schedule file, or too large to verify; `bytes` are
// then gone: they may be many, and are not copied.
[[nodiscard]] Result<FileVerdict> prove_compiled(const std::string& name,
                                                 std::vector<std::uint8_t>& bytes, bool hop_by_hop,
                                                 const ShowProgress& progress);

// The N that a valid schedule is proven for: "every N", "every N up to 21", ...
[[nodiscard]] std::string proven_for(const Program& program, const verify::Verdict& verdict);

}  // namespace espalier::planner

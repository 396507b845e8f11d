#pragma once
// Whether a schedule stays within the limits of VerifyOptions. Proves nothing about it: what
// exceeds them is refused as too large, before memory of that size is taken. Internal to
// collectives/verify.

#include <cstdint>
#include <string>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/report/counterexample.h"

namespace espalier::verify {

// Returns the limit for all N together, options.max_instances_total. Unless the caller asks for
// certain N, it is at most kMaxInstancesAnyFile + kMaxInstancesPerNode * nodes: a schedule of few
// nodes is a small file, which keeps the verifier busy for some seconds at most. The proof for
// every N at once takes less time per instance, so its limit is kTimesAtOnce times this.
inline constexpr std::int64_t kTimesAtOnce = 4;
[[nodiscard]] std::int64_t max_total(const VerifyOptions& options, std::uint32_t nodes,
                                     std::int64_t times = 1);

// Adds the cost of expanding `program` for N = schedule.blocks to schedule.held and at.spent.
// too_large if that exceeds the limits. Call before expanding.
[[nodiscard]] Finding check_size(ExpandedSchedule& schedule, std::uint32_t node,
                                 const Program& program);
// Returns the end of the line of such a refusal: the largest part of the cost of `program` for
// N = schedule.blocks, usually an action with its instances, each counted once per segment.
[[nodiscard]] std::string costliest_text(const ExpandedSchedule& schedule, const Program& program);
// Adds the cost of walking through the steps of all nodes to schedule.spent. If that exceeds the
// limit, the next check_size() refuses.
void add_steps(ExpandedSchedule& schedule);

}  // namespace espalier::verify

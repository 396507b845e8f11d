#pragma once
// Schedules read, compiled and proven with a bar that shows how far the work is (Progress). All
// throw Failure as the functions of the planner do that have the same names. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "planner/files/loaded_schedule.h"
#include "planner/files/schedule_set.h"
#include "planner/make/plan.h"

namespace espalier::tools {

[[nodiscard]] planner::LoadedSchedule load_schedule(std::string name,
                                                    std::vector<std::uint8_t> bytes,
                                                    const std::string& topology);
[[nodiscard]] planner::ScheduleSet read_schedules(const std::string& path);
[[nodiscard]] planner::ScheduleSet read_schedules(std::string name,
                                                  std::vector<std::uint8_t> bytes);
[[nodiscard]] std::vector<std::uint8_t> compile(const planner::PlannedSchedule& schedule);
// Returns the verdict for options to which the bar is added.
[[nodiscard]] verify::Verdict verdict_of(const planner::LoadedSchedule& schedule,
                                         verify::VerifyOptions options);
[[nodiscard]] std::string prove_compiled(const std::string& name, std::vector<std::uint8_t>& bytes,
                                         bool hop_by_hop);

}  // namespace espalier::tools

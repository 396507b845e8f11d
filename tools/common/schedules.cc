#include "tools/common/schedules.h"

#include "planner/files/prove.h"
#include "tools/common/output.h"

namespace espalier::tools {

planner::LoadedSchedule load_schedule(std::string name, std::vector<std::uint8_t> bytes,
                                      const std::string& topology) {
  Progress progress("loading");
  return or_bad_input(
      planner::load_schedule(std::move(name), std::move(bytes), topology, progress.function()));
}

planner::ScheduleSet read_schedules(const std::string& path) {
  Progress progress("loading");
  return or_bad_input(planner::read_schedules(path, progress.function()));
}

planner::ScheduleSet read_schedules(std::string name, std::vector<std::uint8_t> bytes) {
  Progress progress("loading");
  return or_bad_input(
      planner::read_schedules(std::move(name), std::move(bytes), progress.function()));
}

std::vector<std::uint8_t> compile(const planner::PlannedSchedule& schedule) {
  Progress progress("compiling");
  return or_bad_input(planner::compile(schedule, progress.function()));
}

verify::Verdict verdict_of(const planner::LoadedSchedule& schedule, verify::VerifyOptions options) {
  Progress progress("verifying");
  options.progress = progress.function();
  return verify::verify(*schedule.topology, planner::programs_of(schedule), options);
}

std::string prove_compiled(const std::string& name, std::vector<std::uint8_t>& bytes,
                           bool hop_by_hop) {
  Progress progress("verifying");
  planner::FileVerdict verdict =
      or_bad_input(planner::prove_compiled(name, bytes, hop_by_hop, progress.function()));
  if (!verdict.wrong.empty()) negative(verdict.wrong);
  return std::move(verdict.proven_for);
}

}  // namespace espalier::tools

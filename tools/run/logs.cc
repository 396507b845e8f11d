// The logs of `espalier run`.

#include "tools/common/failure.h"
#include "tools/report/trace_json.h"
#include "tools/run/run.h"
#include "tools/workload/result_files.h"

namespace espalier::run_command {
namespace {

// N of the last collective.
std::int64_t last_blocks(const RunOptions& options, const tools::LoadedSchedule& schedule,
                         reference::ReferenceInput what) {
  what.bytes = options.bytes.back();
  return tools::layout_of(schedule.programs.front(), what).blocks;
}

// Checks that the records can be the program's: their links index tables. A board or another host
// wrote them.
void check_log(const EventLog& log, const Program& program, const std::string& name) {
  for (std::uint32_t i = 0; i < log.count(); ++i) {
    const Event& event = log.event(i);
    if (event.link == Event::kNoLink || event.link < links_count(program)) continue;
    tools::negative(name + " reports record " + std::to_string(i) + " of its log on link " +
                    std::to_string(event.link) + "; expected one of its " +
                    std::to_string(links_count(program)) + " links");
  }
}

}  // namespace

std::vector<std::uint32_t> log_rooms(const RunOptions& options,
                                     const tools::LoadedSchedule& schedule,
                                     const reference::ReferenceInput& what) {
  if (!keeps_logs(options)) return std::vector<std::uint32_t>(schedule.programs.size(), 0);
  return tools::log_room(schedule.programs, last_blocks(options, schedule, what));
}

void write_logs(const RunOptions& options, const tools::LoadedSchedule& schedule,
                const reference::ReferenceInput& what, const launch::NodeProcesses& cluster) {
  std::vector<EventLog> logs;
  for (const launch::Member& member : cluster.members()) {
    // A node that died has not reported how many records its log holds.
    const bool reported = member.state == launch::Member::State::kReported;
    logs.push_back(reported ? member.memory.log(member.report.log) : EventLog());
    const auto node = static_cast<std::uint32_t>(logs.size() - 1);
    check_log(logs.back(), schedule.programs[node], schedule.topology->node_name(node));
    if (!reported || options.events.empty()) continue;
    tools::write_events(options.events, node, logs.back());
  }
  if (options.trace.empty()) return;
  const std::string clock = "CLOCK_MONOTONIC of one host, over " + options.launch.provider;
  tools::write_trace(options.trace,
                     tools::make_trace(schedule, logs, options.bytes.back(),
                                       last_blocks(options, schedule, what), clock),
                     options.format == tools::Format::kText);
}

}  // namespace espalier::run_command

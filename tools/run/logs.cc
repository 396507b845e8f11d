// The logs of `espalier run`.

#include "tools/common/failure.h"
#include "tools/common/result_files.h"
#include "tools/report/trace_json.h"
#include "tools/run/node_log.h"
#include "tools/run/run.h"

namespace espalier::run_command {
namespace {

// N of the last collective.
std::int64_t last_blocks(const RunOptions& options, const planner::LoadedSchedule& schedule,
                         reference::ReferenceInput what) {
  what.bytes = options.bytes.back();
  return tools::or_bad_input(planner::layout_of(schedule.programs.front(), what)).blocks;
}

}  // namespace

std::vector<std::uint32_t> log_rooms(const RunOptions& options,
                                     const planner::LoadedSchedule& schedule,
                                     const reference::ReferenceInput& what) {
  if (!keeps_logs(options)) return std::vector<std::uint32_t>(schedule.programs.size(), 0);
  return tools::log_room(schedule.programs, last_blocks(options, schedule, what));
}

void write_logs(const RunOptions& options, const planner::LoadedSchedule& schedule,
                const reference::ReferenceInput& what, const cluster::NodeProcesses& cluster) {
  std::vector<NodeLog> copies;
  std::vector<EventLog> logs;
  copies.reserve(cluster.members().size());
  for (std::uint32_t node = 0; node < cluster.members().size(); ++node) {
    const cluster::Member& member = cluster.members()[node];
    // A node that died has not reported how many records its log holds.
    const bool reported = member.state == cluster::Member::State::kReported;
    copies.emplace_back();
    if (reported) {
      auto copied = NodeLog::copy(member.memory.log(member.report.log), schedule.programs[node]);
      if (!copied) {
        tools::negative(schedule.topology->node_name(node) + " " + copied.error().message);
      }
      copies.back() = *std::move(copied);
    }
    logs.push_back(copies.back().log());
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

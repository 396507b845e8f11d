// Fuzz target: whatever a node leaves in the memory of its event log, the launcher refuses the log
// with one line, or draws a trace of all logs that is JSON. The input chooses a schedule of three
// nodes, gives each node's log a part of the records that its program can have, and changes bytes
// of the records and times.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/schedule/expand.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "firmware/node/control.h"
#include "tests/fuzz/expect.h"
#include "tools/common/json.h"
#include "tools/report/trace_json.h"
#include "tools/run/node_log.h"

namespace espalier::fuzz {
namespace {

constexpr std::uint32_t kNodes = 3;
constexpr std::int64_t kBlocks = 2;
constexpr struct {
  Collective collective;
  const char* algorithm;
} kSchedules[] = {{Collective::kBroadcast, "two-tree"},
                  {Collective::kAllreduce, "chain"},
                  {Collective::kBarrier, "dissemination"}};

// A log in memory that its node can write.
struct SharedLog {
  std::vector<Event> events;
  std::vector<EventTimes> times;
  EventLog::Counts counts;
};

const planner::LoadedSchedule& schedule_of(unsigned number) {
  static const std::vector<planner::LoadedSchedule> all = [] {
    std::vector<planner::LoadedSchedule> made;
    for (const auto& each : kSchedules) {
      planner::LoadedSchedule schedule;
      schedule.name = each.algorithm;
      schedule.topology = or_throw(topology::parse("complete:3"));
      const Algorithm* algorithm = find_algorithm(each.collective, each.algorithm);
      for (std::uint32_t node = 0; node < kNodes; ++node) {
        OwnedProgram program;
        expect(algorithm != nullptr &&
                   algorithm->generate({.ranks = kNodes}, node, program) == Status::kOk,
               "the schedules exist");
        schedule.programs.push_back(program);
      }
      made.push_back(std::move(schedule));
    }
    return made;
  }();
  return all[number];
}

// The log after a run without failures: every step took a microsecond.
SharedLog whole_log(const Program& program) {
  SharedLog log;
  for (const Instance& instance : expand(program, kBlocks)) {
    Event event{.step = static_cast<std::uint32_t>(instance.step),
                .segment = static_cast<std::uint32_t>(instance.a.segment),
                .block = static_cast<std::uint32_t>(instance.a.block),
                .action = static_cast<std::uint8_t>(instance.action),
                .kind = static_cast<std::uint8_t>(instance.kind)};
    if (instance.link >= 0) event.link = event.port = static_cast<std::uint8_t>(instance.link);
    event.begun = event.done = true;
    log.events.push_back(event);
    const std::uint64_t begin = 1'000'000 + 1000 * event.step;
    log.times.push_back({begin, begin + 100, begin + 500, begin + 900});
  }
  log.counts.count = log.counts.retired = static_cast<std::uint32_t>(log.events.size());
  return log;
}

template <typename Record>
void change(Input& input, std::vector<Record>& records) {
  if (records.empty()) return;
  Record& record = records[input.below(256) % records.size()];
  auto* const bytes = reinterpret_cast<std::uint8_t*>(&record);
  std::size_t at = input.below(sizeof record);
  for (unsigned width = 1 + input.below(8); width > 0 && at < sizeof record; --width) {
    bytes[at++] = static_cast<std::uint8_t>(input.byte());
  }
}

void change(Input& input, SharedLog& log) {
  switch (input.below(4)) {
    case 0: change(input, log.times); break;
    case 1: {
      // The launcher has checked that the records fit the memory.
      log.counts.count = std::min(log.counts.count, input.below(256));
      log.counts.retired = std::min(log.counts.count, input.below(256));
      log.counts.lost = input.below(256);
      break;
    }
    default: change(input, log.events);
  }
}

void draw(const planner::LoadedSchedule& schedule, const std::vector<EventLog>& logs) {
  const tools::Trace trace = tools::make_trace(schedule, logs, 64, kBlocks, "clock");
  const auto json = tools::Json::parse(trace.json);
  expect(json.has_value(), "a trace is JSON");
  const tools::Json* events = json->find("traceEvents");
  expect(events != nullptr && events->items() != nullptr, "a trace has its events");
  // A name and a sort key for each node and track; two ends for each arrow.
  const std::size_t all = 2 * trace.nodes + 2 * trace.tracks + trace.slices + 2 * trace.arrows;
  expect(events->items()->size() == all, "what a trace has is counted");
}

}  // namespace

void run(Input& input) {
  const planner::LoadedSchedule& schedule = schedule_of(input.below(std::size(kSchedules)));
  std::vector<SharedLog> shared;
  for (const Program& program : schedule.programs) shared.push_back(whole_log(program));
  while (input.left() > 0) change(input, shared[input.below(kNodes)]);
  std::vector<run_command::NodeLog> copies;
  std::vector<EventLog> logs;
  copies.reserve(kNodes);
  for (std::uint32_t node = 0; node < kNodes; ++node) {
    SharedLog& log = shared[node];
    auto copied = run_command::NodeLog::copy({log.events.data(), log.times.data(), log.counts},
                                             schedule.programs[node]);
    if (!copied) {
      expect(copied.error().message.find('\n') == std::string::npos, "a refusal is one line");
      return;
    }
    copies.push_back(*std::move(copied));
    // From now on the node writes what it wants.
    std::memset(static_cast<void*>(log.events.data()), 0xff, log.events.size() * sizeof(Event));
    std::memset(static_cast<void*>(log.times.data()), 0xff, log.times.size() * sizeof(EventTimes));
    logs.push_back(copies.back().log());
    for (std::uint32_t i = 0; i < logs.back().count(); ++i) {
      const Event& event = logs.back().event(i);
      expect(control::is_flag(event.begun) && control::is_flag(event.done), "the log is a copy");
      std::uint8_t record[kEventBytes];
      event_bytes(event, record);
    }
  }
  draw(schedule, logs);
}

}  // namespace espalier::fuzz

#pragma once
// The schedules of `espalier run`: compiled, chosen or read; and the run of one of them. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/run/run.h"

namespace espalier::run_command {

// A schedule, and the sizes that it runs: bytes of each message, or of one rank's part of it.
struct ScheduleRun {
  planner::LoadedSchedule schedule;
  std::vector<std::uint64_t> bytes;
  std::string chosen;     // why; empty: it was named
  std::string candidate;  // its name; empty: it was read from a file
  // The file of a selection, which nodes load in place of the schedule's file, and its digest.
  std::vector<std::uint8_t> selection_file = {};
  std::uint64_t selection = 0;
};

// The schedules that options.selection or options.file names, each with its sizes. `input` is
// filled if a file is broadcast. Throws Failure (bad input).
[[nodiscard]] std::vector<ScheduleRun> obtain_schedules(const RunOptions& options,
                                                        std::string& input);

// The case that the schedule and the options describe together. With --counts also sets
// options.bytes. Throws Failure (bad input).
[[nodiscard]] reference::ReferenceInput describe_case(RunOptions& options,
                                                      const planner::LoadedSchedule& schedule);

// Proves the schedule, starts its nodes, runs its sizes and checks every result. `input`: the file
// that is broadcast; empty: none. Throws Failure: bad input, or it was interrupted.
[[nodiscard]] RunResult run_schedule(RunOptions options, const ScheduleRun& run,
                                     const std::string& input);

}  // namespace espalier::run_command

#pragma once
// The options that say what to compile, and those that name a schedule of a file. Host only.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "planner/files/schedule_set.h"
#include "planner/make/plan.h"
#include "tools/common/command_line.h"

namespace espalier::tools {

// The --algorithm that leaves the choice to a model (planner/choose).
inline constexpr const char* kAuto = "auto";

// As typed; empty: not given.
struct PlanOptions {
  std::string topology, collective, algorithm = kAuto, root = "0";
  // parameters of some algorithms; a run length of "own": the algorithm's own, for every message
  std::string run_length = {}, radix = {}, lambda = {}, ratio = {};
  std::string window = {};             // steps in flight that the schedule must allow
  bool window_is_limit = false;        // a schedule that allows fewer will do
  std::string links = {}, ports = {};  // "routed" or "hop-by-hop", "multiport" or "single-send"
  std::string limits = {};             // "boards" or "host": the tables of programs
  // placement of ranks: none, snake, z-order, a known embedding's name, a file
  std::string embedding = {};
};

// Adds all options except those below; `required`: topology and collective must be given.
void add_plan_options(Command command, PlanOptions& options, bool required);
void add_schedule_window(Command command, PlanOptions& options);
void add_links(Command command, PlanOptions& options);  // --links and --ports
void add_limits(Command command, std::string& limits);  // --limits

// All below throw Failure (bad input) with a line that says what is wrong and what would be right.
[[nodiscard]] std::unique_ptr<topology::Topology> parse_topology(const std::string& spec);
[[nodiscard]] Collective collective_of(const std::string& name);
// The request that the options are. Reads the files that they name.
[[nodiscard]] planner::PlanRequest plan_request(const PlanOptions& options);
// The schedule that the options name; kAuto is not a name.
[[nodiscard]] planner::PlannedSchedule make_schedule(const PlanOptions& options);

// What the model chooses, for messages: "auto" or "run length".
[[nodiscard]] const char* choice_word(const PlanOptions& options);

// Adds --schedule, which names a member by its number.
void add_schedule_option(Command command, std::string& number);
// The member that --schedule names; the only one if there is one. Nothing: it was not given, and
// the file has several. Throws Failure (bad input).
[[nodiscard]] std::optional<std::size_t> given_member(const planner::ScheduleSet& set,
                                                      const std::string& number);
// The same for a command that is about one schedule: throws Failure (bad input) if `what` (an
// option, or the command) has none.
[[nodiscard]] const planner::ScheduleSet::Member& need_member(const planner::ScheduleSet& set,
                                                              std::string_view number,
                                                              std::string_view what);

}  // namespace espalier::tools

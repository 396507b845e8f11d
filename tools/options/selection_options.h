#pragma once
// The options that select what to compile, and those that name a schedule of a file. Host only.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "planner/files/schedule_set.h"
#include "planner/make/selection.h"
#include "tools/common/command_line.h"

namespace espalier::tools {

// Adds all options except those below; `required`: topology and collective must be given.
void add_selection(Command command, planner::Selection& selection, bool required);
void add_schedule_window(Command command, planner::Selection& selection);
void add_links(Command command, planner::Selection& selection);  // --links and --ports
void add_limits(Command command, std::string& limits);           // --limits

// What the model chooses, for messages: "auto" or "run length".
[[nodiscard]] const char* choice_word(const planner::Selection& selection);

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

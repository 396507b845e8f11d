#pragma once
// What a schedule file holds: one schedule, or a selection of several. Host only.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "espalier/collectives/schedule/selection.h"
#include "tools/common/command_line.h"
#include "tools/common/json.h"
#include "tools/select/loaded_schedule.h"
#include "tools/workload/reference.h"

namespace espalier::tools {

struct ScheduleSet {
  // A schedule, as the bytes of a file of its own.
  struct Member {
    std::string name;  // for messages: the file's, or "schedule 1 of b.esp"
    std::string algorithm;
    std::vector<std::uint8_t> bytes;
  };
  std::string name;                   // of the file
  std::vector<std::uint8_t> bytes;    // of the file of a selection
  std::vector<std::uint8_t> encoded;  // the selection, as nodes decode it
  std::optional<Selected> selected;   // nothing: the file of one schedule
  std::vector<Member> members;        // one, or the selection's, in its order
};

// Reads the file at `path`, or bytes in memory, called `name` in messages. If the file is a
// selection, decodes every program and checks it with the table. A file of one schedule is not
// decoded. Throws Failure (bad input).
[[nodiscard]] ScheduleSet read_schedules(const std::string& path);
[[nodiscard]] ScheduleSet read_schedules(std::string name, std::vector<std::uint8_t> bytes);

// A member that was chosen, and why.
struct ChosenMember {
  std::size_t index = 0;
  std::string reason;  // "1048576 bytes: two-tree (from 65536 bytes)"; empty: there is no selection
};
// Chooses as nodes do. Throws Failure (bad input): no row is for the operator.
[[nodiscard]] ChosenMember choose_member(const ScheduleSet& set,
                                         const reference::ReferenceInput& what);
// The member that takes most operators: that of the first row.
[[nodiscard]] const ScheduleSet::Member& first_member(const ScheduleSet& set);

// Adds --schedule, which names a member by its number.
void add_schedule_option(Command command, std::string& number);
// The member that --schedule names; the only one if there is one. Nothing: it was not given, and
// the file has several. Throws Failure (bad input).
[[nodiscard]] std::optional<std::size_t> given_member(const ScheduleSet& set,
                                                      const std::string& number);
// The same for a command that is about one schedule: throws Failure (bad input) if `what` (an
// option, or the command) has none.
[[nodiscard]] const ScheduleSet::Member& need_member(const ScheduleSet& set,
                                                     std::string_view number,
                                                     std::string_view what);

// Whether the selection has rows for operators that do not commute.
[[nodiscard]] bool serves_all(const ScheduleSet& set);
// The table: a line for each row. Only of a selection.
[[nodiscard]] std::string rows_text(const ScheduleSet& set);
// "broadcast by 3 schedules, root 0, model 0x0123456789abcdef, selection 0x..."
[[nodiscard]] std::string selection_text(const ScheduleSet& set);
[[nodiscard]] Json selection_json(const ScheduleSet& set);

}  // namespace espalier::tools

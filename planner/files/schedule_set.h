#pragma once
// What a schedule file holds: one schedule, or a selection of several. Host only.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule/selection.h"
#include "planner/progress.h"
#include "planner/workload/reference.h"

namespace espalier::planner {

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
// decoded. Errors: unreadable; a selection that is truncated, corrupt or malformed.
[[nodiscard]] Result<ScheduleSet> read_schedules(const std::string& path,
                                                 const ShowProgress& progress);
[[nodiscard]] Result<ScheduleSet> read_schedules(std::string name, std::vector<std::uint8_t> bytes,
                                                 const ShowProgress& progress);

// A member that was chosen.
struct ChosenMember {
  std::size_t index = 0;
  const SelectionRow* row = nullptr;  // of the set's table; null: there is no selection
};
// Chooses as nodes do. Error: no row is for the operator.
[[nodiscard]] Result<ChosenMember> choose_member(const ScheduleSet& set,
                                                 const reference::ReferenceInput& what);
// The member that takes most operators: that of the first row.
[[nodiscard]] const ScheduleSet::Member& first_member(const ScheduleSet& set);

// Whether the selection has rows for operators that do not commute.
[[nodiscard]] bool serves_all(const ScheduleSet& set);

}  // namespace espalier::planner

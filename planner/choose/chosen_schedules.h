#pragma once
// Choosing for all sizes of messages: several schedules and the table that chooses from them, or
// one schedule if it serves all. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/schedule/selection.h"
#include "planner/choose/choice.h"

namespace espalier::planner {

inline constexpr std::uint64_t kMaxChosenBytes = std::uint64_t{1} << 30;  // 1 GiB

// What a chosen schedule is made from.
struct ChosenOrigin {
  PlanRequest plan;       // with an algorithm
  bool in_order = false;  // chosen for operators that do not commute
};

struct ChosenSchedules {
  std::vector<PlannedSchedule> schedules;  // at least one; each generates its own digest
  std::vector<std::string> names;          // for users: "fractional, run length 4"
  std::vector<ChosenOrigin> origins;
  SelectionTable table = {};  // of several
  std::uint64_t percent = 0;  // at each size that was ranked, the prediction is at most so much
                              // above the best
  std::string found_by;       // how the model was found
};

// Chooses for messages of 1 byte to kMaxChosenBytes (of one rank's part, where counts are per
// rank). Takes the fewest rows with which every size that is ranked stays within `percent` % of the
// best prediction (Sizes), or within 2 % if only the run length is chosen. If a board or a
// selection has no room for them, the tolerance is doubled until they fit. If operands are
// combined, operators that do not commute have rows of their own, unless the schedules for those
// that commute serve them, too.
// Error: no algorithm can do it.
[[nodiscard]] Result<ChosenSchedules> choose_for_all_sizes(const ChoiceRequest& request,
                                                           std::uint64_t percent = 5);

// Makes one of these schedules again, from its origin and the same request, without ranking. Error:
// no such schedule was chosen.
[[nodiscard]] Result<PlannedSchedule> make_chosen(const ChosenOrigin& origin,
                                                  ChoiceRequest request);

}  // namespace espalier::planner

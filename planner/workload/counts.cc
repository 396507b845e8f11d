#include "planner/workload/counts.h"

#include <string>

#include "base/counted.h"
#include "base/one_line.h"

namespace espalier::planner {

Result<void> check_takes_counts(const Program& program, const reference::ReferenceInput& what) {
  SlotGroups groups;
  if (what.counts.empty() || takes_unequal_counts(program, groups)) return {};
  const std::string by =
      std::string(collective_name(program.collective)) + " by " + one_line(program.algorithm);
  if (program.collective == Collective::kAllToAll) {
    return fail(by +
                " passes parts on through other nodes, which do not know their lengths; expected "
                "--bytes, or a schedule that sends each part directly (pairwise, routed)");
  }
  return fail(by +
              " keeps several parts in scratch without a common order; expected --bytes, or "
              "another schedule");
}

ElementCounts MachineCounts::of(std::uint32_t node) {
  if (what_.counts.empty()) return reference::count(what_);
  const std::size_t index = what_.collective == Collective::kAllToAll ? node : 0;
  if (offsets_.size() <= index) offsets_.resize(index + 1);
  offsets_[index].resize(unequal_offsets(what_.collective, what_.ranks));
  return {what_.counts.data(), what_.counts.size(), offsets_[index].data()};
}

}  // namespace espalier::planner

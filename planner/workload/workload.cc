#include "planner/workload/workload.h"

#include "base/counted.h"

namespace espalier::planner {

Result<Layout> layout_of(const Program& program, const reference::ReferenceInput& what) {
  Layout layout;
  const std::uint32_t size = element_bytes(what.op);
  const Status status = make_layout(program, reference::count(what), size, layout);
  if (status == Status::kOk) return layout;
  std::string why = status_name(status);
  if (status == Status::kTooLarge) {
    why = "longer than " + std::to_string(kMaxMessageBytes) + " bytes, or of more than " +
          std::to_string(kMaxBlocks) + " blocks; expected fewer bytes";
  }
  return fail("the schedule takes no message of " + counted(what.bytes, "byte") +
              (counts_per_rank(what.collective) ? " a rank: " : ": ") + why);
}

}  // namespace espalier::planner

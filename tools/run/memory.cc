// Whether a run fits this machine's memory.

#include <algorithm>
#include <bit>

#include "base/counted.h"
#include "espalier/hal/mem/mem_endpoint.h"
#include "hal/fabric/provider_list.h"
#include "tools/common/failure.h"
#include "tools/common/host.h"
#include "tools/run/run.h"

namespace espalier::run_command {
namespace {

// Size of a slot of libfabric's endpoints. A lane has a slot for each step of the window, in both
// directions (hal/fabric).
constexpr std::uint64_t kEagerBytes = 16384;

// Memory of a node's endpoint. Under mem each link has an inbox in the node's memory, whatever its
// lanes.
std::uint64_t endpoint_bytes(const cluster::LaunchOptions& launch, const Program& program,
                             const tools::LinkTable* table) {
  if (launch.provider == ofi::kMemProvider) {
    mem::Shape shape{.ring = std::bit_ceil(launch.window)};
    return links_count(program) * mem::inbox_bytes(shape);
  }
  const std::uint64_t lanes = table == nullptr ? links_count(program) : tools::endpoints(*table);
  return lanes * 2 * launch.window * kEagerBytes;
}

// Bytes of all nodes and of the launcher; UINT64_MAX for messages that no schedule takes.
std::uint64_t needed(const RunOptions& options, const planner::LoadedSchedule& schedule,
                     const std::vector<tools::LinkTable>& tables, reference::ReferenceInput what,
                     std::uint64_t bytes) {
  what.bytes = bytes / element_bytes(what.op) * element_bytes(what.op);
  std::uint64_t sum = 0, longest = 0;
  for (const Program& program : schedule.programs) {
    Layout layout;
    if (make_layout(program, reference::count(what), element_bytes(what.op), layout) !=
        Status::kOk) {
      return UINT64_MAX;
    }
    sum += what.counts.size() * sizeof(std::uint64_t);
    sum +=
        scratch_needed(program, layout) +
        endpoint_bytes(options.launch, program, tables.empty() ? nullptr : &tables[program.node]);
    if (is_router(program)) continue;
    sum += reference::input_bytes(what, program.node);
    longest = std::max(longest, reference::result_bytes(what, program.node));
    sum += reference::result_bytes(what, program.node);
  }
  // One result to compare with; the result of a scan accumulates from rank to rank in 64 bits per
  // element.
  const bool scan = what.collective == Collective::kScan || what.collective == Collective::kExscan;
  return sum + longest + (scan ? reference::count(what) * 16 : 0);
}

}  // namespace

void check_memory(const RunOptions& options, const planner::LoadedSchedule& schedule,
                  const std::vector<tools::LinkTable>& tables,
                  const reference::ReferenceInput& what, std::uint64_t most) {
  const std::uint64_t available = tools::available_memory();
  if (needed(options, schedule, tables, what, most) <= available) return;
  if (!what.counts.empty()) {
    tools::bad_input("--counts on " + tools::counted(schedule.programs.size(), "node") +
                     " need more memory than there is; expected fewer elements");
  }
  std::uint64_t fits = 0;
  for (std::uint64_t bit = kMaxMessageBytes; bit != 0; bit /= 2) {
    if (fits + bit < most && needed(options, schedule, tables, what, fits + bit) <= available)
      fits += bit;
  }
  tools::bad_input(tools::counted(most, "byte") +
                   (counts_per_rank(what.collective) ? " a rank on " : " on ") +
                   tools::counted(schedule.programs.size(), "node") +
                   " need more memory than there is; expected at most " +
                   tools::counted(fits, "byte") + " here");
}

}  // namespace espalier::run_command

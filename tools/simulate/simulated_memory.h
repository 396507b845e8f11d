#pragma once
// The memory that simulated nodes read and write, and its expected final content: the memory of all
// ranks, filled once for all runs of one collective; or, without data, addresses alone. Host only.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/simulation/address_range.h"
#include "collectives/simulation/node_memory.h"
#include "planner/workload/counts.h"
#include "planner/workload/reference.h"
#include "tools/common/result_files.h"
#include "tools/simulate/stored_schedule.h"

namespace espalier::tools {

class SimulatedMemory {
 public:
  // `schedule` and `run` outlive it. Throws Failure (bad input) where this machine has not that
  // much memory, or without data not that many addresses.
  SimulatedMemory(const StoredSchedule& schedule, const reference::ReferenceInput& run,
                  const Layout& layout, bool data);

  [[nodiscard]] bool has_data() const { return addresses_ == nullptr; }
  [[nodiscard]] const reference::ReferenceInput& run() const { return run_; }
  // Poisons the results of the previous collective, so that a byte that is never written shows.
  void poison_results();
  // For node's machine.
  [[nodiscard]] Buffers of(const Program& program);
  [[nodiscard]] ElementCounts counts(std::uint32_t node) { return counts_.of(node); }
  [[nodiscard]] RankMemory rank(std::uint32_t rank) const;
  // The first error in the ranks' results, one line; empty: nothing, or there are no data.
  [[nodiscard]] std::string wrong();

 private:
  void check_available(bool data) const;
  // The layout of the node's own parts.
  [[nodiscard]] Layout layout_at(const Program& program);

  const StoredSchedule& schedule_;
  const reference::ReferenceInput& run_;
  const Layout layout_;  // of the longest parts
  planner::MachineCounts counts_;
  std::vector<sim::NodeMemory> nodes_;  // with data
  std::unique_ptr<sim::AddressRange> addresses_;
  std::unique_ptr<reference::Results> results_;  // kept if one result serves all ranks
};

}  // namespace espalier::tools

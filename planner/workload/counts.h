#pragma once
// Another number of elements for each rank. Host only.

#include <cstdint>
#include <vector>

#include "espalier/collectives/schedule/program.h"
#include "planner/workload/reference.h"

namespace espalier::planner {

// Error: the program cannot have unequal counts. `what` has counts.
[[nodiscard]] Result<void> check_takes_counts(const Program& program,
                                              const reference::ReferenceInput& what);

// The counts in the form that machines take, with the memory that they need.
class MachineCounts {
 public:
  // `what` must outlive this object.
  explicit MachineCounts(const reference::ReferenceInput& what) : what_(what) {}
  // Returns the counts for a node. They are valid as long as this object.
  [[nodiscard]] ElementCounts of(std::uint32_t node);

 private:
  const reference::ReferenceInput& what_;
  // By node in an all-to-all; otherwise one for all nodes.
  std::vector<std::vector<std::uint64_t>> offsets_;
};

}  // namespace espalier::planner

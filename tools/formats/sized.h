#pragma once
// A schedule's operations with their sizes for one message: what simulators take. Host only.

#include <cstdint>
#include <vector>

#include "collectives/predict/model.h"
#include "tools/formats/operations.h"

namespace espalier::tools::formats {

struct SizedOperations {
  Operations expanded;
  // By node and operation: bytes of a message; ns of a combine or copy, at least 1 if it has bytes.
  std::vector<std::vector<std::uint64_t>> bytes, duration_ns;
};

// Expands the schedule for a message of `bytes` (of one rank's part, where counts are per rank; 0
// for a barrier), cut as the nodes cut it. The model has the time of combines and copies. Throws
// Failure (bad input): no node takes such a message, or as expand_operations().
[[nodiscard]] SizedOperations size_operations(const planner::LoadedSchedule& loaded,
                                              std::uint64_t bytes, const predict::Model& model);

}  // namespace espalier::tools::formats

#pragma once
// Common functions of the tests of the grid: schedules by name, verified, and run on simulated
// machines.

#include <cstdint>
#include <string>

#include "collectives/simulation/testing/job_cluster.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"
#include "tests/whole.h"

namespace espalier::grid {

using testing::programs_of;

constexpr BlockRule kBlocks = {0, 64};

// "broadcast chain on complete:5, root 1"
[[nodiscard]] std::string name_of(const Algorithm& algorithm, const topology::Topology& topology,
                                  const CollectiveParameters& parameters);

// Verifies for every N up to max_blocks; a gtest failure if the schedule is invalid.
verify::Verdict verified(const topology::Topology& topology, const Programs& programs,
                         std::int64_t max_blocks, const std::string& name);

// Runs the programs in lock step with N blocks per segment, the last one short. Results that differ
// from the reference's, or other steps than claimed, are gtest failures.
void run(const Programs& programs, const CollectiveParameters& parameters, std::int64_t blocks,
         const std::string& name);

}  // namespace espalier::grid

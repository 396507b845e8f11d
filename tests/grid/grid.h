#pragma once
// What the tests of the grid share: schedules by name, verified, and run on simulated machines.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"
#include "tests/whole.h"

namespace espalier::grid {

[[nodiscard]] std::unique_ptr<topology::Topology> parsed(const std::string& spec);

// All nodes' programs; empty where the algorithm cannot do the group (kUnsupported). A gtest
// failure on any other error.
[[nodiscard]] Programs programs_of(const Algorithm& algorithm, const Group& group);

// "broadcast chain on complete:5, root 1"
[[nodiscard]] std::string name_of(const Algorithm& algorithm, const topology::Topology& topology,
                                  const Group& group);

// Verified for every N up to max_blocks; a gtest failure where it is not valid.
verify::Verdict verified(const topology::Topology& topology, const Programs& programs,
                         std::int64_t max_blocks, const std::string& name);

// Runs the programs in lock step with N blocks a segment, the last one short: results as the
// reference's, steps as claimed; gtest failures else.
void run(const Programs& programs, const Group& group, std::int64_t blocks,
         const std::string& name);

}  // namespace espalier::grid

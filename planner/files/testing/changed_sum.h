#pragma once
// A schedule file to spoil, for tests of what proves schedules.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "base/testing/results.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"

namespace espalier::planner {

// Returns the file of a sum along a chain of three ranks, with each program changed.
inline std::vector<std::uint8_t> changed_sum(const std::function<void(Program&)>& change) {
  CollectiveParameters parameters{
      .ranks = 3, .topology_digest = or_throw(topology::parse("complete:3"))->digest()};
  ScheduleFileWriter writer("complete:3", parameters.topology_digest, 3, 3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    Program program{};
    EXPECT_EQ(find_algorithm(Collective::kReduce, "chain")->generate(parameters, rank, program),
              Status::kOk);
    change(program);
    EXPECT_EQ(writer.add(program), Status::kOk);
  }
  std::vector<std::uint8_t> bytes;
  EXPECT_EQ(writer.finish(bytes), Status::kOk);
  return bytes;
}

}  // namespace espalier::planner

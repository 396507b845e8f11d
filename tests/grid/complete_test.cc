// Every algorithm for any topology, on complete graphs: verified, and run on simulated machines in
// the steps that it claims, with the reference's results. With ESPALIER_WHOLE=1 (some minutes) p in
// {1 .. 64, 100}, roots {0, 1, p / 2, p - 1}, N in {1 .. 12, 20}; otherwise a sample.

#include <gtest/gtest.h>

#include <set>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "tests/grid/grid.h"

namespace espalier::grid {
namespace {

std::vector<std::uint32_t> sizes() {
  if (!whole()) return {1, 2, 3, 6, 9, 16, 23, 40};
  std::vector<std::uint32_t> all;
  for (std::uint32_t p = 1; p <= 64; ++p) all.push_back(p);
  all.push_back(100);
  return all;
}

TEST(Grid, CompleteGraphs) {
  std::uint32_t schedules = 0;
  for (const std::uint32_t ranks : sizes()) {
    const auto topology = or_throw(topology::parse("complete:" + std::to_string(ranks)));
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.where != Where::kAnywhere) continue;
      std::set<std::uint64_t> done;
      for (const std::uint32_t root : {0u, 1u, ranks / 2, ranks - 1}) {
        if (root >= ranks) continue;
        const CollectiveParameters parameters = topology_parameters(*topology, root, &kBlocks);
        const Programs programs = programs_of(algorithm, parameters);
        if (HasFailure()) return;
        if (programs.empty()) continue;
        // Collectives without a root have one schedule.
        if (!done.insert(programs[0].schedule_digest).second) continue;
        const std::string name = name_of(algorithm, *topology, parameters);
        const bool pipelined = programs[0].blocks[0].block_bytes != 0;
        (void)verified(*topology, programs, !pipelined ? 1 : whole() ? 20 : 7, name);
        if (HasFailure()) return;
        for (const std::int64_t blocks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 20}) {
          if (blocks > 1 && !pipelined) break;
          if (!whole() && blocks != 1 && blocks != 2 && blocks != 3 && blocks != 7) continue;
          run(programs, parameters, blocks, name);
          if (HasFailure()) return;
        }
        ++schedules;
      }
    }
  }
  std::printf("%u schedules verified and run\n", schedules);
  EXPECT_GE(schedules, 8 * algorithms().size()) << "most algorithms do most numbers of ranks";
}

}  // namespace
}  // namespace espalier::grid

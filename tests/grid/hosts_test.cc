// Every algorithm for hosts, verified with its claim about the hosts' links, and run on simulated
// machines in the steps that it claims, with the reference's results: H and R in 1..6 and some
// larger ones, every root class. By default a sample; the whole with ESPALIER_WHOLE=1.

#include <gtest/gtest.h>

#include <set>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "planner/make/shape.h"
#include "tests/grid/grid.h"

namespace espalier::grid {
namespace {

std::vector<std::string> hosts_specs() {
  if (!whole()) {
    return {"hosts:1x1", "hosts:1x6", "hosts:6x1", "hosts:2x2", "hosts:2x5",
            "hosts:3x3", "hosts:5x3", "hosts:6x6", "hosts:4x8"};
  }
  std::vector<std::string> all{"hosts:8x8", "hosts:2x16", "hosts:16x2", "hosts:13x5", "hosts:7x9"};
  for (int hosts = 1; hosts <= 6; ++hosts) {
    for (int ranks = 1; ranks <= 6; ++ranks) {
      all.push_back("hosts:" + std::to_string(hosts) + "x" + std::to_string(ranks));
    }
  }
  return all;
}

std::set<std::uint32_t> root_classes(const topology::Shape& shape, Collective collective) {
  if (!has_root(collective)) return {0};
  const std::uint32_t p = shape.hosts * shape.host_ranks;
  return {0, shape.host_ranks - 1, p / 2, p - shape.host_ranks, p - 1};
}

TEST(Grid, Hosts) {
  std::uint32_t schedules = 0;
  for (const std::string& spec : hosts_specs()) {
    const auto topology = or_throw(topology::parse(spec));
    const topology::Shape shape = topology->shape();
    if (small_sample() && topology->ranks() > 15) continue;
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.where != Where::kHosts) continue;
      for (const std::uint32_t root : root_classes(shape, algorithm.collective)) {
        CollectiveParameters parameters = topology_parameters(*topology, root, &kBlocks);
        set_shape(shape, parameters);
        const Programs programs = programs_of(algorithm, parameters);
        ASSERT_FALSE(programs.empty());
        const std::string name = name_of(algorithm, *topology, parameters);
        const verify::Verdict verdict = verified(*topology, programs, 0, name);
        EXPECT_TRUE(verdict.slot) << name << ": one message per step, host and direction";
        const bool pipelined = programs[0].blocks[0].block_bytes != 0;
        EXPECT_EQ(verdict.for_all || !pipelined, true) << name << ": " << verdict.limited;
        for (const std::int64_t blocks : {1, 2, 3, 7}) {
          if (HasFailure()) return;
          if (blocks == 1 || pipelined) run(programs, parameters, blocks, name);
        }
        ++schedules;
      }
    }
  }
  std::printf("%u schedules verified and run\n", schedules);
  EXPECT_GE(schedules, 100u);
}

}  // namespace
}  // namespace espalier::grid

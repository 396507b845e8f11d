// The searched algorithms, and fractional trees of given runs: verified, and run on simulated
// machines in the steps that they claim, with the reference's results. With ESPALIER_WHOLE=1 all of
// the grid, and every N that the verifier knows to matter; otherwise a sample.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/parameters.h"
#include "espalier/collectives/search.h"
#include "tests/grid/grid.h"

namespace espalier::grid {
namespace {

CollectiveParameters parameters_on(const topology::Topology& topology, std::uint32_t root,
                                   std::uint32_t run_length) {
  CollectiveParameters parameters = topology_parameters(topology, root, &kBlocks);
  parameters.run_length = run_length;
  return parameters;
}

std::set<std::uint32_t> roots(std::uint32_t ranks) { return {0, ranks > 1 ? 1u : 0u, ranks - 1}; }

// Whether modules have the channels that a tree on a crossbar needs: two in and two out for variant
// A, one in and two out for variant B, two in and one out for its reduce.
bool has_channels(const topology::Topology& topology,
                  const searched::SearchedAlgorithm& algorithm) {
  const topology::Shape shape = topology.shape();
  const std::string name = algorithm.name;
  if (!name.starts_with("crossbar")) return true;
  const bool reduces = algorithm.collective == Collective::kReduce;
  const std::uint32_t in = name == "crossbar-a" || reduces ? 2 : 1;
  const std::uint32_t out = name == "crossbar-a" || !reduces ? 2 : 1;
  return std::ranges::min(shape.channels_in) >= in && std::ranges::min(shape.channels_out) >= out;
}

void prove_and_run_searched(const topology::Topology& topology,
                            const CollectiveParameters& parameters, const Programs& programs) {
  const std::string name = std::string(programs[0].algorithm) + " on " + topology.spec() +
                           ", root " + std::to_string(parameters.root) + ", r " +
                           std::to_string(parameters.run_length);
  (void)verified(topology, programs, whole() ? 0 : 21, name);
  for (const std::int64_t blocks : {1, 2, 3, 7, 20}) {
    if (::testing::Test::HasFailure()) return;
    run(programs, parameters, blocks, name);
  }
}

TEST(Grid, Searched) {
  std::vector<std::string> specs{"complete:1",
                                 "complete:2",
                                 "complete:13",
                                 "complete:40",
                                 "crossbar:1x5",
                                 "crossbar:3x4",
                                 "crossbar:5x7",
                                 "crossbar:4x6,in=1,out=2",
                                 "crossbar:3x5,in=2,out=1",
                                 "crossbar:2x3x4",
                                 "crossbar:2x2x2x2,in=1,out=2",
                                 "crossbar:3x2x4,in=2/1,out=2"};
  if (whole()) {
    for (std::uint32_t p = 3; p < 40; ++p) specs.push_back("complete:" + std::to_string(p));
    specs.insert(specs.end(),
                 {"complete:64", "complete:100", "crossbar:8x8", "crossbar:2x2", "crossbar:13x2",
                  "crossbar:9x11,in=1,out=2", "crossbar:7x6,in=2,out=1"});
  }
  std::uint32_t schedules = 0;
  for (const std::string& spec : specs) {
    const auto topology = or_throw(topology::parse(spec));
    if (small_sample() && topology->ranks() > 24) continue;
    for (const searched::SearchedAlgorithm& algorithm : searched::searched_algorithms()) {
      // The fat trees' tests cover the schedules with programs for routers, tests/graphs and
      // network_test.cc those for any graph.
      if (algorithm.own_links || algorithm.collective > Collective::kReduce) continue;
      if (!algorithm.applies(*topology)) continue;
      const bool has_run = std::string(algorithm.name) != "double-fibonacci";
      for (const std::uint32_t root : roots(topology->ranks())) {
        for (const std::uint32_t run_length : {0u, 1u, 2u, 3u}) {
          if (run_length > 0 && !has_run) break;
          const CollectiveParameters parameters = parameters_on(*topology, root, run_length);
          const auto programs = algorithm.search(*topology, parameters);
          const std::string error = message_of(programs);
          if (!has_channels(*topology, algorithm)) {
            EXPECT_NE(error, "");
            continue;
          }
          if (error.find("do not fit") != std::string::npos) continue;  // runs too long for modules
          ASSERT_EQ(error, "") << algorithm.name << " on " << spec;
          // Some trees send more than one block per link of a crossbar's channels.
          if (spec.starts_with("crossbar") != (std::string(algorithm.topologies) != "any topology"))
            continue;
          prove_and_run_searched(*topology, parameters, *programs);
          if (HasFailure()) return;
          ++schedules;
        }
      }
    }
  }
  std::printf("%u schedules verified and run\n", schedules);
  EXPECT_GE(schedules, 40u);
}

TEST(Grid, FractionalRuns) {
  std::vector<std::uint32_t> sizes{2, 3, 9, 24};
  if (whole()) {
    sizes.assign({64, 100});
    for (std::uint32_t p = 1; p <= 40; ++p) sizes.push_back(p);
  }
  std::uint32_t schedules = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.max_run_length == 0) continue;
    for (const std::uint32_t ranks : sizes) {
      const auto topology = or_throw(topology::parse("complete:" + std::to_string(ranks)));
      for (const std::uint32_t root : roots(ranks)) {
        for (const std::uint32_t wanted : {1u, 2u, 3u, 5u, 20u}) {
          const std::uint32_t run_length = std::min(wanted, algorithm.max_run_length);
          const CollectiveParameters parameters = parameters_on(*topology, root, run_length);
          prove_and_run_searched(*topology, parameters, programs_of(algorithm, parameters));
          if (HasFailure()) return;
          ++schedules;
        }
      }
    }
  }
  std::printf("%u schedules verified and run\n", schedules);
  EXPECT_GE(schedules, 5 * sizes.size()) << "each run length on each complete graph";
}

}  // namespace
}  // namespace espalier::grid

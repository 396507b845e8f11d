// Every schedule that the library makes is valid, for every group of up to 40 ranks.

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "base/testing/results.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/verify/verify.h"
#include "tests/mutation/schedules.h"

namespace espalier {
namespace {

std::unique_ptr<topology::Topology> complete(std::uint32_t ranks) {
  return or_throw(topology::parse("complete:" + std::to_string(ranks)));
}

// Whether input and output may be the same memory: not if data to be sent are kept until the end.
bool is_in_place(const mutation::Made& made) {
  return made.collective != Collective::kAllToAll &&
         !(made.collective == Collective::kExscan &&
           (made.algorithm == "hosts-chain" || made.algorithm == "doubly-pipelined" ||
            made.algorithm == "two-tree-mirror" || made.algorithm == "two-tree-simplex")) &&
         !(made.algorithm == "all-port" && made.collective == Collective::kAllreduce) &&
         !(made.algorithm == "two-tree" &&
           (made.collective == Collective::kScan || made.collective == Collective::kExscan));
}

void expect_valid(const topology::Topology& topology, const mutation::Made& made) {
  const verify::Verdict verdict = verify::verdict_of(topology, made.programs);
  ASSERT_TRUE(verdict.valid) << made.name << ": " << verdict.counterexample.message;
  EXPECT_TRUE(verdict.in_place || !is_in_place(made)) << made.name;
  // Nothing new begins beyond the bound. (Larger ones: every_blocks_test.cc, up to 220.)
  const std::int64_t further = 2 * verdict.proven_blocks;
  if (topology.ranks() > 9 || further > 64) return;
  const verify::Verdict beyond =
      verify::verdict_of(topology, made.programs, {.max_blocks = further});
  EXPECT_TRUE(beyond.valid) << made.name << ": " << beyond.counterexample.message;
}

TEST(Valid, EveryScheduleUpTo40Ranks) {
  std::uint32_t schedules = 0;
  for (std::uint32_t ranks = 1; ranks <= 40; ++ranks) {
    const auto topology = complete(ranks);
    std::set<std::uint32_t> roots = {0, ranks / 2};
    if (ranks <= 12) roots.insert({1 % ranks, ranks - 1});
    for (const std::uint32_t window : {1u, 3u, 8u}) {
      if (window != 8 && (ranks % 5 != 0 || ranks > 20)) continue;
      mutation::for_schedules(*topology, roots, window, [&](const mutation::Made& made) {
        ++schedules;
        expect_valid(*topology, made);
      });
    }
  }
  EXPECT_GT(schedules, 2000u);
}

TEST(Valid, OnMeshesAndFatTrees) {
  std::uint32_t routers = 0;
  for (const char* spec :
       {"fattree:k=2,h=1,c=1", "fattree:k=2,h=2,c=1", "fattree:k=2,h=3,c=k", "fattree:k=3,h=2,c=1",
        "fattree:k=4,h=2,c=1,2", "fattree:k=5,h=1,c=1", "fattree:k=2x3,c=1", "fattree:k=3x2,c=k"}) {
    const auto topology = or_throw(topology::parse(spec));
    mutation::for_schedules(*topology, {0, 1, topology->ranks() - 1}, 8,
                            [&](const mutation::Made& made) {
                              if (made.programs.size() <= topology->ranks()) return;
                              ++routers;
                              expect_valid(*topology, made);
                            });
  }
  EXPECT_GT(routers, 30u);
}

TEST(Valid, OnHosts) {
  std::uint32_t schedules = 0;
  for (const char* spec : {"hosts:1x5", "hosts:5x1", "hosts:2x2", "hosts:3x4", "hosts:4x3"}) {
    const auto topology = or_throw(topology::parse(spec));
    for (const std::uint32_t window : {1u, 8u}) {
      mutation::for_schedules(*topology, {0, 1, topology->ranks() - 1}, window,
                              [&](const mutation::Made& made) {
                                if (!made.algorithm.starts_with("hosts-")) return;
                                ++schedules;
                                expect_valid(*topology, made);
                              });
    }
  }
  EXPECT_GT(schedules, 150u);
}

TEST(Valid, OnTori) {
  std::uint32_t schedules = 0;
  for (const char* spec : {"ring:2", "ring:5", "ring:6", "torus:2x3", "torus:3x4", "torus:2x2x3",
                           "mesh:2x2x3", "hypercube:3"}) {
    const auto topology = or_throw(topology::parse(spec));
    for (const std::uint32_t window : {1u, 8u}) {
      mutation::for_schedules(*topology, {0}, window, [&](const mutation::Made& made) {
        const bool bucket = made.algorithm.find("bucket") != std::string::npos;
        if (!bucket && made.algorithm != "all-port") return;
        ++schedules;
        expect_valid(*topology, made);
      });
    }
  }
  EXPECT_GE(schedules, 100u);
}

TEST(Valid, LargerGroups) {
  for (const std::uint32_t ranks : {64u, 100u, 129u, 300u}) {
    const auto topology = complete(ranks);
    for (const Collective collective :
         {Collective::kBroadcast, Collective::kReduce, Collective::kAllreduce, Collective::kScan}) {
      const CollectiveParameters parameters = mutation::parameters_of(*topology, 0, 8);
      const Programs programs =
          mutation::programs_of(*find_algorithm(collective, "two-tree"), parameters);
      const verify::Verdict verdict = verify::verdict_of(*topology, programs);
      EXPECT_TRUE(verdict.valid) << ranks << " ranks: " << verdict.counterexample.message;
      EXPECT_GT(verdict.proven_blocks, std::int64_t{parameters.window});
    }
  }
}

}  // namespace
}  // namespace espalier

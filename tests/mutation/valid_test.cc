// Every schedule of the library's generators is valid, for every group of up to 40 ranks.

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "collectives/verify/verify.h"

namespace espalier {
namespace {

std::unique_ptr<topology::Topology> complete(std::uint32_t ranks) {
  std::string error;
  auto topology = topology::parse("complete:" + std::to_string(ranks), error);
  EXPECT_NE(topology, nullptr) << error;
  return topology;
}

// All programs of a group; empty where the algorithm cannot do it.
std::vector<Program> programs_of(const Algorithm& algorithm, const Group& group) {
  std::vector<Program> programs(group.ranks);
  for (std::uint32_t me = 0; me < group.ranks; ++me) {
    const Status status = algorithm.generate(group, me, programs[me]);
    if (status == Status::kUnsupported) return {};
    EXPECT_EQ(status, Status::kOk) << status_name(status);
  }
  return programs;
}

TEST(Valid, EveryScheduleUpTo40Ranks) {
  std::uint32_t count = 0;
  const Algorithm* table = algorithms(count);
  std::uint32_t schedules = 0;
  for (std::uint32_t ranks = 1; ranks <= 40; ++ranks) {
    const auto topology = complete(ranks);
    for (std::uint32_t k = 0; k < count; ++k) {
      if (table[k].where != Where::kAnywhere) continue;
      for (const std::uint32_t root : std::set<std::uint32_t>{0, 1 % ranks, ranks / 2, ranks - 1}) {
        if (root != 0 && table[k].collective == espalier_Collective_ALLREDUCE) continue;
        for (const std::uint32_t window : {1u, 3u, 8u}) {
          if (window != 8 && ranks % 5 != 0) continue;
          Group group;
          group.ranks = ranks;
          group.root = root;
          group.topology_digest = topology->digest();
          group.window = window;
          const std::vector<Program> programs = programs_of(table[k], group);
          if (programs.empty()) continue;
          ++schedules;
          const verify::Verdict verdict = verify::verify(
              *topology, [&](std::uint32_t node) -> const Program& { return programs[node]; }, {});
          ASSERT_TRUE(verdict.valid) << table[k].name << " " << collective_name(table[k].collective)
                                     << ", " << ranks << " ranks, root " << root << ", window "
                                     << window << ": " << verdict.counterexample.message;
          if (ranks <= 12) {
            // Nothing new begins beyond the bound.
            verify::Options beyond;
            beyond.max_blocks = 3 * verdict.proven_blocks;
            EXPECT_TRUE(verify::verify(
                            *topology,
                            [&](std::uint32_t node) -> const Program& { return programs[node]; },
                            beyond)
                            .valid);
          }
          EXPECT_TRUE(verdict.in_place) << table[k].name << " p " << ranks << " root " << root;
        }
      }
    }
  }
  EXPECT_GT(schedules, 1000u);
}

TEST(Valid, LargerGroups) {
  for (const std::uint32_t ranks : {64u, 100u, 129u, 300u}) {
    const auto topology = complete(ranks);
    for (const Collective collective : {espalier_Collective_BROADCAST, espalier_Collective_REDUCE,
                                        espalier_Collective_ALLREDUCE}) {
      Group group;
      group.ranks = ranks;
      group.topology_digest = topology->digest();
      const std::vector<Program> programs =
          programs_of(*find_algorithm(collective, "two-tree"), group);
      const verify::Verdict verdict = verify::verify(
          *topology, [&](std::uint32_t node) -> const Program& { return programs[node]; }, {});
      EXPECT_TRUE(verdict.valid) << ranks << " ranks: " << verdict.counterexample.message;
      EXPECT_GT(verdict.proven_blocks, std::int64_t{group.window});
    }
  }
}

}  // namespace
}  // namespace espalier

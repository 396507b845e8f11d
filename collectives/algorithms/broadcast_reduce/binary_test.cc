// The binary tree's step counts, compared with the prototype's d (testdata/golden.json).

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "tests/algorithms/prototype_values.h"

namespace espalier {
namespace {

std::int64_t claimed_steps(std::uint32_t p, std::int64_t blocks) {
  Program program;
  const Algorithm& binary = *find_algorithm(Collective::kBroadcast, "binary");
  EXPECT_EQ(binary.generate({.ranks = p}, p - 1, program), Status::kOk);
  return count_value(program.counts[program.steps_ref], blocks);
}

TEST(Binary, DepthOfThePrototype) {
  const nlohmann::json values = prototype_values()["ft_d"];  // "r,P": d
  std::size_t compared = 0;
  for (const auto& [key, value] : values.items()) {
    if (!key.starts_with("1,")) continue;
    const auto p = static_cast<std::uint32_t>(std::stoul(key.substr(2)));
    if (p < 3) continue;
    ++compared;
    for (const std::int64_t blocks : {1, 2, 1000}) {
      EXPECT_EQ(claimed_steps(p, blocks), value.get<std::int64_t>() + 2 * blocks - 1) << "p " << p;
    }
  }
  EXPECT_GE(compared, 5u);
}

// P_i ranks are reached in i steps; one rank more takes one step more.
TEST(Binary, ReachOfThePrototype) {
  const auto reach = prototype_values()["ft_P"]["1"].get<std::vector<std::uint32_t>>();
  ASSERT_GE(reach.size(), 20u);
  for (std::size_t i = 2; i < reach.size(); ++i) {
    EXPECT_EQ(claimed_steps(reach[i], 1), static_cast<std::int64_t>(i));
    EXPECT_EQ(claimed_steps(reach[i] + 1, 1), static_cast<std::int64_t>(i) + 1);
  }
}

}  // namespace
}  // namespace espalier

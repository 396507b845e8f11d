#include <gtest/gtest.h>

#include <cmath>

#include "tests/papers/cost/alpha.h"
#include "tests/papers/cost/leaf_queues.h"

namespace espalier::cost {
namespace {

// The lower bound of multinode broadcast is the number of messages that each leaf must receive. No
// queue is longer than the number of messages in flight.
TEST(LeafQueues, NothingIsFasterThanTheLeavesCanReceive) {
  for (const std::uint32_t k : {2u, 3u, 4u, 5u}) {
    for (std::uint32_t h = 1; std::pow(k, h) <= 64; ++h) {
      const auto n = static_cast<std::int64_t>(std::pow(k, h));
      const Queued flood = multiport_flood(k, std::vector<std::uint32_t>(h, 1));
      EXPECT_EQ(flood.steps, k == 2 && n > 2 ? n + 1 : n) << k << "," << h;
      EXPECT_GE(single_port_multinode_broadcast(k, h).steps, flood.steps);
      EXPECT_GE(single_port_total_exchange(k, h).steps, n * n * (k - 1) / k + 2 * h - 1);
      EXPECT_LT(flood.longest, n * (n - 1));
    }
  }
}

TEST(LeafQueues, ThickBranchesDoNotSpareQueues) {
  EXPECT_EQ(multiport_flood(3, {1, 3, 9, 27}).longest, 54);
  EXPECT_EQ(multiport_flood(3, {1, 3, 9, 27}).steps, 81);
}

TEST(Alpha, OptimalSplitsReachTheOptimum) {
  for (const Lambda lambda : {Lambda{1, 1}, Lambda{1, 2}, Lambda{5, 9}, Lambda{2, 5}}) {
    const std::vector<std::int64_t> reach = reach_table(lambda, 400);
    for (std::int64_t n = 2; n <= 400; ++n) {
      const Kept kept = optimal_kept(reach, lambda, n);
      ASSERT_LE(kept.least, kept.most) << n;
      const AlphaRange alpha = optimal_alpha(reach, lambda, n);
      ASSERT_LT(alpha.low, alpha.high) << n;
    }
  }
}

// If one alpha serves all n up to 3000, its trees are optimal.
TEST(Alpha, ACommonAlphaMakesOptimalTrees) {
  const Lambda two{1, 2};
  const auto common = common_alpha(two, 3000);
  ASSERT_TRUE(common.has_value());
  const double golden = (std::sqrt(5.0) - 1) / 2;
  EXPECT_LE(common->low, golden);
  EXPECT_LT(golden, common->high);
  for (const std::int64_t n : {2, 3, 10, 89, 90, 1000, 3000}) {
    EXPECT_EQ(alpha_tree_ticks(two, n, golden),
              static_cast<std::int64_t>(reach_table(two, n).size()) - 1)
        << n;
  }
}

TEST(Alpha, TablesGrowSlowly) {
  EXPECT_FALSE(common_alpha({20, 39}, 250).has_value());
  EXPECT_EQ(alpha_table({20, 39}, 1000).size(), 33u);
  EXPECT_EQ(alpha_table({1000, 1293}, 10000).size(), 64u);
  EXPECT_EQ(alpha_table({2, 5}, 10000).size(), 12u);
}

}  // namespace
}  // namespace espalier::cost

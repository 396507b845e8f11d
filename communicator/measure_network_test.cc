// What join() measures: the same on every rank, in few values.

#include "communicator/measure_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "communicator/testing/local_job.h"

namespace espalier::communicator {
namespace {

// `hosts`: the letter of each rank's host; empty: over tcp.
std::vector<NetworkCost> measure(std::uint32_t ranks, std::uint32_t ranks_per_host,
                                 const std::string& hosts) {
  std::vector<NetworkCost> costs(ranks);
  testing::on_all(
      ranks,
      [&](Communicator& world) {
        costs[world.rank()] = or_throw(measure_network(world, ranks_per_host));
      },
      hosts.empty() ? testing::Change() : testing::on_hosts(hosts));
  return costs;
}

// Only the three highest bits may be set.
bool is_rounded(std::uint64_t value) {
  return value != 0 && std::countr_zero(value) + 3 >= static_cast<int>(std::bit_width(value));
}

void check(const std::vector<NetworkCost>& costs) {
  for (const NetworkCost& one : costs) {
    EXPECT_EQ(one.message_ps, costs[0].message_ps);
    EXPECT_EQ(one.byte_fs, costs[0].byte_fs);
  }
  EXPECT_TRUE(is_rounded(costs[0].message_ps)) << costs[0].message_ps;
  EXPECT_TRUE(is_rounded(costs[0].byte_fs) || costs[0].byte_fs == 1000) << costs[0].byte_fs;
  EXPECT_GT(costs[0].message_ps, 100'000u) << "less than 0.1 us over tcp";
}

TEST(MeasureNetwork, IsTheSameOnAllRanksAndRounded) {
  for (const std::uint32_t ranks : {2u, 3u, 8u}) check(measure(ranks, 1, ""));
}

TEST(MeasureNetwork, IsTheSameOnAllRanksOfHostsAndRounded) {
  check(measure(4, 2, "aabb"));
  check(measure(6, 2, "aabbcc"));
  check(measure(3, 1, "abc"));  // All ranks are on hosts of their own.
}

}  // namespace
}  // namespace espalier::communicator

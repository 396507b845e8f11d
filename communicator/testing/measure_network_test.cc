// What join() measures: the same on every rank, in few values.

#include "communicator/measure_network.h"

#include <gtest/gtest.h>

#include <bit>
#include <thread>
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
        const std::string host = hosts.empty() ? "" : hosts.substr(world.rank(), 1);
        costs[world.rank()] = or_throw(measure_network(world, ranks_per_host, host));
      },
      hosts.empty() ? testing::Change() : testing::on_hosts(hosts));
  return costs;
}

// Only the three highest bits may be set.
bool is_rounded(std::uint64_t value) {
  return value != 0 && std::countr_zero(value) + 3 >= static_cast<int>(std::bit_width(value));
}

void check(const std::vector<NetworkCost>& costs, std::uint32_t shared_cores) {
  for (const NetworkCost& one : costs) {
    EXPECT_EQ(one.message_ps, costs[0].message_ps);
    EXPECT_EQ(one.byte_fs, costs[0].byte_fs);
    EXPECT_EQ(one.burst_bytes, costs[0].burst_bytes);
    EXPECT_EQ(one.shared_cores, shared_cores);
  }
  EXPECT_TRUE(is_rounded(costs[0].message_ps)) << costs[0].message_ps;
  EXPECT_TRUE(is_rounded(costs[0].byte_fs) || costs[0].byte_fs == 1000) << costs[0].byte_fs;
  EXPECT_GT(costs[0].message_ps, 100'000u) << "less than 0.1 us over tcp";
}

// 1 GB/s.
TEST(MeasureNetwork, ABurstIsWhatTookLessThanAllBytesWould) {
  constexpr std::uint64_t kByteFs = 1'000'000;
  EXPECT_EQ(burst_of(kByteFs, 32'768, 32'768), 0u);
  EXPECT_EQ(burst_of(kByteFs, 32'768, 40'000), 0u);
  EXPECT_EQ(burst_of(kByteFs, 32'768, 29'000), 0u) << "less than an eighth";
  EXPECT_EQ(burst_of(kByteFs, 32'768, 21'340), 10'240u) << "seven eighths of 11,428, rounded";
  EXPECT_EQ(burst_of(kByteFs, 32'768, 0), 28'672u);
}

TEST(MeasureNetwork, IsTheSameOnAllRanksAndRounded) {
  for (const std::uint32_t ranks : {2u, 3u, 8u}) {
    const std::uint32_t cores = std::thread::hardware_concurrency();
    check(measure(ranks, 1, ""), cores < ranks ? cores : 0);
  }
}

TEST(MeasureNetwork, IsTheSameOnAllRanksOfHostsAndRounded) {
  check(measure(4, 2, "aabb"), 0);
  check(measure(6, 2, "aabbcc"), 0);
  check(measure(3, 1, "abc"), 0);  // All ranks are on hosts of their own.
}

}  // namespace
}  // namespace espalier::communicator

// What join() measures: the same on every rank, in few values.

#include "communicator/measure_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <thread>
#include <vector>

#include "base/testing/results.h"
#include "communicator/testing/local_job.h"

namespace espalier::communicator {
namespace {

std::vector<NetworkCost> measure(std::uint32_t ranks) {
  testing::LocalJob job(ranks);
  std::vector<NetworkCost> costs(ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      JoinOptions options;
      options.membership = job.member(rank);
      options.provider = "tcp";
      Communicator world = or_throw(join(options));
      costs[rank] = or_throw(measure_network(world, 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return costs;
}

// Only the three highest bits may be set.
bool is_rounded(std::uint64_t value) {
  return value != 0 && std::countr_zero(value) + 3 >= static_cast<int>(std::bit_width(value));
}

TEST(MeasureNetwork, IsTheSameOnAllRanksAndRounded) {
  for (const std::uint32_t ranks : {2u, 3u, 8u}) {
    const std::vector<NetworkCost> costs = measure(ranks);
    for (const NetworkCost& one : costs) {
      EXPECT_EQ(one.message_ps, costs[0].message_ps);
      EXPECT_EQ(one.byte_fs, costs[0].byte_fs);
    }
    EXPECT_TRUE(is_rounded(costs[0].message_ps)) << costs[0].message_ps;
    EXPECT_TRUE(is_rounded(costs[0].byte_fs) || costs[0].byte_fs == 1000) << costs[0].byte_fs;
    EXPECT_GT(costs[0].message_ps, 100'000u) << "less than 0.1 us over tcp";
  }
}

}  // namespace
}  // namespace espalier::communicator

// Two hosts and a board over libfabric, one of which starts a collective with another count: all
// three detect the mismatch.

#include <memory>
#include <tuple>

#include "firmware/gateway/testing/joined_board.h"
#include "hal/fabric/testing/collective_rank.h"
#include "hal/fabric/testing/local_endpoints.h"

namespace espalier::gateway {
namespace {

constexpr std::uint32_t kNodes = 3;
constexpr std::uint32_t kBoard = 1;
constexpr std::uint64_t kMaxCount = 30001;          // elements
constexpr std::uint64_t kDeadline = 2'000'000'000;  // ns

ofi::FixedConfig config() {
  ofi::FixedConfig config;
  config.provider = "tcp";
  return config;
}

class MismatchTest : public ::testing::Test {
 protected:
  MismatchTest()
      : hosts_(config(), ofi::complete_peers(kNodes)),
        hub_({{1, 1}, {0, 0}}, {}),
        board_(hub_, kBoard, {2, 0}, serial_config(2, 7)),  // reversed, like JoinedBoard's links
        joined_(hub_, 0, hosts_[kBoard], 2) {}

  void SetUp() override { ASSERT_EQ(hosts_.error, ""); }

  // Runs one collective in which rank `odd` has the count `other`. Returns each rank's final
  // status.
  std::vector<Status> run(std::uint64_t count, std::uint64_t other, std::uint32_t odd) {
    std::vector<std::unique_ptr<ofi::CollectiveRank>> ranks;
    for (std::uint32_t v = 0; v < kNodes; ++v) {
      ranks.push_back(std::make_unique<ofi::CollectiveRank>(kNodes, kMaxCount));
      Endpoint& endpoint = v == kBoard ? board_.endpoint() : hosts_[v];
      EXPECT_EQ(ranks[v]->init(endpoint, kDeadline), Status::kOk);
      EXPECT_TRUE(ranks[v]->plan(Collective::kAllreduce, "two-tree"));
      EXPECT_EQ(ranks[v]->start(v == odd ? other : count, 1), Status::kOk);
    }
    std::vector<Status> ends(kNodes, Status::kBusy);
    // The board's clock advances with the hosts' clocks.
    const std::uint64_t ahead = hub_.now() - hosts_[0].now();
    const std::uint64_t until = hub_.now() + 100 * kDeadline;
    bool done = false;
    while (!done && hub_.now() < until) {
      bool busy = false, failed = false;
      for (std::uint32_t v = 0; v < kNodes; ++v) {
        const Status status = ranks[v]->poll();
        const Status cause = ranks[v]->machine().cause().status;
        ends[v] = status != Status::kOk || cause == Status::kOk ? status : cause;
        busy = busy || status == Status::kBusy;
        failed = failed || cause != Status::kOk;
      }
      joined_.step();
      hub_.advance(ahead + hosts_[0].now());
      done = !busy;
      // A short message completes before it is compared. Its sender may have ended with kOk, and
      // receives the cause a little later.
      for (const Status end : ends) done = done && (end == Status::kOk) == !failed;
    }
    if (count == other) {
      for (const auto& rank : ranks) EXPECT_EQ(rank->incorrect(), 0u);
    }
    return ends;
  }

  ofi::LocalEndpoints<ofi::FixedConfig> hosts_;
  serial::Hub hub_;
  serial::SerialNode board_;
  JoinedBoard joined_;
};

TEST_F(MismatchTest, EqualCountsAgree) {
  EXPECT_EQ(run(30000, 30000, 0), std::vector<Status>(kNodes, Status::kOk));
}

class OddTest
    : public MismatchTest,
      public ::testing::WithParamInterface<std::tuple<std::uint64_t, std::uint64_t, int>> {};
INSTANTIATE_TEST_SUITE_P(Counts, OddTest,
                         ::testing::Combine(::testing::Values(1, 10, 30000),
                                            ::testing::Values(11, 30001),
                                            ::testing::Values(0, 1, 2)));

TEST_P(OddTest, AllRanksDetectIt) {
  const auto [count, other, odd] = GetParam();
  EXPECT_EQ(run(count, other, static_cast<std::uint32_t>(odd)),
            std::vector<Status>(kNodes, Status::kMismatch));
}

}  // namespace
}  // namespace espalier::gateway

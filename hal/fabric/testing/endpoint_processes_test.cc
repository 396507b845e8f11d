// One process per node: machines over libfabric, and what happens when a process dies.

#include "hal/fabric/testing/endpoint_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <set>
#include <tuple>

#include "hal/fabric/testing/collective_rank.h"

namespace espalier::ofi {
namespace {

constexpr std::uint64_t kDeadlineNs = 2'000'000'000;

class ProcessesTest : public testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  static bool hop_by_hop() { return std::get<1>(GetParam()); }
  // Hop by hop, every rank has an endpoint for each other rank.
  static std::uint32_t ranks() { return hop_by_hop() ? 6 : 16; }
  static FixedConfig config() {
    FixedConfig config;
    config.provider = std::get<0>(GetParam());
    if (hop_by_hop()) config.lanes = {{1, 1}};
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(Providers, ProcessesTest,
                         testing::Combine(testing::Values("tcp", "mem"), testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "_hop_by_hop" : "");
                         });

// Executes collectives of mixed sizes; 0 if every result is correct.
int run_collectives(Endpoint& endpoint, std::uint32_t ranks, std::uint32_t rounds) {
  CollectiveRank rank(ranks, 1 << 18);
  if (rank.init(endpoint, 60'000'000'000) != Status::kOk) return 1;
  for (const Collective collective :
       {Collective::kBroadcast, Collective::kReduce, Collective::kAllreduce}) {
    if (!rank.plan(collective, "two-tree")) return 2;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      for (const std::uint64_t count : {0u, 1u, 1023u, 1024u, 1025u, 5000u, 1u << 18}) {
        if (count > 5000 && round != 0) continue;
        if (rank.start(count, round) != Status::kOk) return 3;
        if (rank.finish() != Status::kOk) return 4;
        if (rank.incorrect() != 0) return 5;
      }
    }
  }
  return 0;
}

TEST_P(ProcessesTest, TwoRunCollectives) {
  EndpointProcesses processes(config(), complete_peers(2),
                              [](Endpoint& endpoint) { return run_collectives(endpoint, 2, 50); });
  EXPECT_EQ(processes.join(), 0);
}

TEST_P(ProcessesTest, ManyRunCollectives) {
  EndpointProcesses processes(config(), complete_peers(ranks()), [](Endpoint& endpoint) {
    return run_collectives(endpoint, ranks(), 10);
  });
  EXPECT_EQ(processes.join(), 0);
}

using Fate = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // status, detector, peer

// Executes allreduces until one fails; writes its fate to `out`.
int run_until_failure(Endpoint& endpoint, std::uint32_t ranks, std::uint64_t count, int out) {
  CollectiveRank rank(ranks, count);
  if (rank.init(endpoint, kDeadlineNs) != Status::kOk) return 1;
  if (!rank.plan(Collective::kAllreduce, "two-tree")) return 2;
  for (std::uint32_t round = 0;; ++round) {
    Status status = rank.start(count, round);
    if (status == Status::kOk) status = rank.finish();
    if (status == Status::kOk) continue;
    const Cause cause = rank.machine().cause();
    const Fate fate = {static_cast<std::uint32_t>(cause.status), cause.detector, cause.peer};
    return write(out, &fate, sizeof(fate)) == sizeof(fate) ? 0 : 3;
  }
}

// Sends `signal` to node `victim` in the middle of allreduces of `count` elements; returns how the
// others ended.
std::multiset<Fate> disturb(const FixedConfig& config, std::uint32_t ranks, std::uint32_t victim,
                            int signal, std::uint64_t count) {
  int channel[2];
  EXPECT_EQ(pipe(channel), 0);
  std::multiset<Fate> fates;
  {
    EndpointProcesses processes(config, complete_peers(ranks), [&](Endpoint& endpoint) {
      return run_until_failure(endpoint, ranks, count, channel[1]);
    });
    usleep(300'000);
    processes.signal(victim, signal);
    for (std::uint32_t i = 0; i + 1 < ranks; ++i) {
      Fate fate;
      if (read(channel[0], &fate, sizeof(fate)) != sizeof(fate)) break;
      fates.insert(fate);
    }
    processes.signal(victim, SIGKILL);
    EXPECT_EQ(processes.join(), 0);
  }
  close(channel[0]);
  close(channel[1]);
  return fates;
}

void expect_blame(const std::multiset<Fate>& fates, std::uint32_t ranks, std::uint32_t victim) {
  ASSERT_EQ(fates.size(), ranks - 1);
  EXPECT_EQ(std::set<Fate>(fates.begin(), fates.end()).size(), 1u) << "not all name the same cause";
  const auto [status, detector, peer] = *fates.begin();
  EXPECT_EQ(status, static_cast<std::uint32_t>(Status::kDeadLink));
  EXPECT_EQ(peer, victim);
  EXPECT_NE(detector, victim);
}

TEST_P(ProcessesTest, AKilledProcessIsNamedByAllOthers) {
  expect_blame(disturb(config(), ranks(), 5, SIGKILL, 100'000), ranks(), 5);
}

TEST_P(ProcessesTest, AStoppedProcessIsNamedByAllOthers) {
  expect_blame(disturb(config(), ranks(), 0, SIGSTOP, 100), ranks(), 0);
}

}  // namespace
}  // namespace espalier::ofi

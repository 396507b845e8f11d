// Over libfabric, nothing is allocated between boot and the last result. Allocations of
// threads that run machines are counted, outside libfabric's own calls.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <tuple>

#include "hal/fabric/testing/collective_rank.h"
#include "hal/fabric/testing/counted_heap.h"
#include "hal/fabric/testing/local_endpoints.h"

namespace espalier::ofi {
namespace {

using heap::counted;
using heap::ours;
using heap::theirs;

constexpr std::uint32_t kRanks = 4;
constexpr std::uint64_t kMaxCount = 300'000;

struct Job {
  Collective collective;
  const char* algorithm;
};
constexpr Job kJobs[] = {{Collective::kBroadcast, "two-tree"},
                         {Collective::kBroadcast, "binomial"},
                         {Collective::kReduce, "chain"},
                         {Collective::kAllreduce, "two-tree"}};

using Mode = std::tuple<const char*, bool>;  // provider, hop by hop
class HeapTest : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Providers, HeapTest,
                         testing::Combine(testing::Values("tcp", "mem"), testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "_hop_by_hop" : "");
                         });

// Executes one rank's collectives; adds its errors to `errors`.
void run_rank(Endpoint& endpoint, std::atomic<std::uint32_t>& running,
              std::atomic<std::uint64_t>& errors) {
  CollectiveRank rank(kRanks, kMaxCount);
  if (rank.init(endpoint, 60'000'000'000) != Status::kOk) errors += 1000;
  for (const Job& job : kJobs) {  // Boot: the scratch that any of them needs.
    if (!rank.plan(job.collective, job.algorithm)) errors += 1000;
  }
  counted = true;
  for (const Job& job : kJobs) {
    if (!rank.plan(job.collective, job.algorithm)) errors += 1000;
    for (std::uint32_t round = 0; round < 12; ++round) {
      for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000},
                                        std::uint64_t{1025}, kMaxCount}) {
        if (count == kMaxCount && round != 0) continue;
        Status status = rank.start(count, round);
        if (status == Status::kOk) status = rank.finish();
        if (status != Status::kOk) errors += 1;
        errors += rank.incorrect();
      }
    }
  }
  counted = false;
  --running;
  while (running != 0) {
    (void)rank.poll();
    endpoint.wait(endpoint.now() + 1'000'000);
  }
}

TEST_P(HeapTest, NothingIsAllocatedOutsideLibfabric) {
  if (!kHeapReplaced) GTEST_SKIP() << "the sanitizer replaces malloc itself";
  FixedConfig config;
  config.provider = std::get<0>(GetParam());
  if (std::get<1>(GetParam())) config.lanes = {{2, 2}};
  LocalEndpoints endpoints(config, complete_peers(kRanks));
  ASSERT_EQ(endpoints.error, "");
  ours = theirs = 0;
  std::atomic<std::uint32_t> running{kRanks};
  std::atomic<std::uint64_t> errors{0};
  std::vector<std::thread> threads;
  for (std::uint32_t v = 0; v < kRanks; ++v) {
    threads.emplace_back([&, v] { run_rank(endpoints[v], running, errors); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, 0u);
  EXPECT_EQ(ours, 0u);
  std::printf("allocations: ours %llu, in libfabric's calls %llu\n",
              static_cast<unsigned long long>(ours), static_cast<unsigned long long>(theirs));
}

TEST(HeapCounter, TellsOurAllocationsFromOthers) {
  if (!kHeapReplaced) GTEST_SKIP() << "the sanitizer replaces malloc itself";
  ours = theirs = 0;
  counted = true;
  {
    const std::vector<int> one(10);
    const LibfabricCall mark;
    const std::vector<int> other(10);
    EXPECT_EQ(one.size(), other.size());
  }
  counted = false;
  EXPECT_EQ(ours, 1u);
  EXPECT_EQ(theirs, 1u);
}

}  // namespace
}  // namespace espalier::ofi

// Failing runs: machines that share frames, compared with one machine per node.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "collectives/algorithms/testing/parameters.h"
#include "collectives/schedule/program_store.h"
#include "collectives/simulation/address_range.h"
#include "collectives/simulation/cluster.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/simulation/run.h"

namespace espalier::sim {
namespace {

constexpr std::uint32_t kRanks = 13;
constexpr std::uint64_t kBytes = 64 * 2 * 20;

struct Broadcasts {
  explicit Broadcasts(const char* algorithm, std::uint32_t ranks = kRanks) {
    const Algorithm* one = find_algorithm(Collective::kBroadcast, algorithm);
    CollectiveParameters parameters{.ranks = ranks, .blocks = &kSmallBlocks, .blocks_count = 1};
    for (std::uint32_t node = 0; node < ranks; ++node) {
      auto& program = all.emplace_back(std::make_unique<Program>());
      EXPECT_EQ(one->generate(parameters, node, *program), Status::kOk);
      store.add(*program);
      links.add(node, *program);
    }
  }
  std::vector<std::unique_ptr<Program>> all;
  ProgramStore store;
  LinkCollector links;
};

Model model_without_data() { return Model{.no_data = true}; }

Cluster::Options without_data() {
  Cluster::Options options;
  options.config.no_data = true;
  return options;
}

// The final status and cause of each machine, one line each.
std::string causes(Cluster& cluster) {
  std::string text;
  for (std::uint32_t node = 0; node < cluster.nodes(); ++node) {
    if (!cluster.network().alive(node)) continue;
    const Cause& cause = cluster.machine(node).cause();
    const StallReport stall = cluster.machine(node).stall_report();
    text += std::to_string(node) + ": " + status_name(cause.status) + " " +
            std::to_string(cause.detector) + " " + std::to_string(cause.peer) + ", step " +
            std::to_string(stall.step) + " since " + std::to_string(stall.since_ns) + "\n";
  }
  return text;
}

// One node posts a different message size, or one node dies during the run.
struct Fault {
  std::uint32_t other = kRanks, dead = kRanks;
};

std::string run(Cluster& cluster, Broadcasts& programs, const Fault& fault, bool lock_step) {
  if (fault.dead < kRanks) cluster.network().kill(fault.dead, 20'000);
  const AddressRange addresses(1 << 20);
  for (std::uint32_t node = 0; node < kRanks; ++node) {
    const std::uint64_t count = node == fault.other ? kBytes - 1 : kBytes;
    const Program& program = *programs.all[node];
    Layout layout;
    EXPECT_EQ(make_layout(program, count, 1, layout), Status::kOk);
    EXPECT_EQ(cluster.start(node, program, addresses.buffers(program, layout), Operator(), count),
              Status::kOk);
  }
  const RunResult result = lock_step ? cluster.run_lock_step(1) : cluster.run();
  return std::string(status_name(result.status)) + " after " + std::to_string(result.seconds) +
         "\n" + causes(cluster);
}

TEST(PagedMachines, FailAsMachinesOfTheirOwnDo) {
  for (const char* algorithm : {"two-tree", "chain", "binomial"}) {
    Broadcasts programs(algorithm);
    for (const bool lock_step : {false, true}) {
      for (const Fault fault : {Fault{}, Fault{6, kRanks}, Fault{kRanks, 4}, Fault{2, 9}}) {
        Cluster own(Network(model_without_data(), programs.links.links(kRanks)), without_data());
        const std::string expected = run(own, programs, fault, lock_step);
        for (const std::uint32_t frames : {1u, 3u, 64u}) {
          Cluster paged(Network(model_without_data(), programs.links.links(kRanks)), programs.store,
                        without_data(), frames);
          EXPECT_EQ(run(paged, programs, fault, lock_step), expected)
              << algorithm << (lock_step ? " in lock step, " : " freely, ") << frames << " frames";
        }
      }
    }
  }
}

TEST(PagedMachines, ReturnTheErrorsOfMachines) {
  Broadcasts programs("two-tree");
  Cluster::Options options = without_data();
  options.config.check_blocks = true;
  Cluster checked(Network(model_without_data(), programs.links.links(kRanks)), programs.store,
                  options, 2);
  EXPECT_EQ(checked.start(0, *programs.all[0], Buffers(), Operator(), kBytes), Status::kBadArgument)
      << "no blocks to check without data";
  Cluster cluster(Network(model_without_data(), programs.links.links(kRanks)), programs.store,
                  without_data(), 2);
  EXPECT_EQ(cluster.start(1, *programs.all[1], Buffers(), Operator(), kBytes), Status::kBadArgument)
      << "no buffers";
}

TEST(Network, WithoutDataThereIsNothingToPoison) {
  Model model = model_without_data();
  model.poison = true;
  EXPECT_FALSE(Network::create(model, complete_links(2)));
}

#ifdef ESPALIER_ASSERTIONS
TEST(PagedMachinesDeathTest, OnlyStartedNodesHaveMachines) {
  Broadcasts programs("chain");
  Cluster cluster(Network(model_without_data(), programs.links.links(kRanks)), programs.store,
                  without_data(), 2);
  EXPECT_DEATH((void)cluster.machine(0), "expected has\\(node\\)");
}

TEST(AddressRangeDeathTest, HoldsAllBuffersOfTheNode) {
  Broadcasts programs("chain");
  const Program& program = *programs.all[0];
  Layout layout;
  ASSERT_EQ(make_layout(program, kBytes, 1, layout), Status::kOk);
  const std::uint64_t bytes = AddressRange::bytes_for(program, layout);
  (void)AddressRange(bytes).buffers(program, layout);
  const AddressRange small(bytes - 1);
  EXPECT_DEATH((void)small.buffers(program, layout), "expected bytes_for");
}
#endif

}  // namespace
}  // namespace espalier::sim

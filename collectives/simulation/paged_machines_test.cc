// Failing runs: machines that share frames, compared with one machine per node.

#include "collectives/simulation/paged_machines.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "collectives/simulation/address_range.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/simulation/run.h"

namespace espalier::sim {
namespace {

constexpr BlockRule kBlocks = {0, 64};
constexpr std::uint32_t kRanks = 13;
constexpr std::uint64_t kBytes = 64 * 2 * 20;

// One machine per node.
class Own final : public Machines {
 public:
  explicit Own(std::uint32_t nodes) : machines_(nodes) {
    for (auto& machine : machines_) machine = std::make_unique<Machine>();
  }
  [[nodiscard]] std::uint32_t size() const override {
    return static_cast<std::uint32_t>(machines_.size());
  }
  [[nodiscard]] bool has(std::uint32_t /*node*/) const override { return true; }
  [[nodiscard]] Machine& at(std::uint32_t node) override { return *machines_[node]; }

 private:
  std::vector<std::unique_ptr<Machine>> machines_;
};

struct Programs {
  explicit Programs(const char* algorithm, std::uint32_t ranks = kRanks) {
    const Algorithm* one = find_algorithm(Collective::kBroadcast, algorithm);
    Group group;
    group.ranks = ranks;
    group.blocks = &kBlocks;
    group.blocks_count = 1;
    for (std::uint32_t node = 0; node < ranks; ++node) {
      auto& program = all.emplace_back(std::make_unique<Program>());
      EXPECT_EQ(one->generate(group, node, *program), Status::kOk);
      store.add(*program);
      links.add(node, *program);
    }
  }
  std::vector<std::unique_ptr<Program>> all;
  ProgramStore store;
  LinkCollector links;
};

Model without_data() {
  Model model;
  model.no_data = true;
  return model;
}

MachineConfig config() {
  MachineConfig config;
  config.no_data = true;
  return config;
}

// The final status and cause of each machine, one line each.
std::string causes(Machines& machines, const Network& network) {
  std::string text;
  for (std::uint32_t node = 0; node < machines.size(); ++node) {
    if (!network.alive(node)) continue;
    const Cause& cause = machines.at(node).cause();
    const StallReport stall = machines.at(node).stall_report();
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

std::string run_own(Programs& programs, const Fault& fault, bool lock_step) {
  Network network(without_data(), programs.links.links(kRanks));
  if (fault.dead < kRanks) network.kill(fault.dead, 20'000);
  const AddressRange addresses(1 << 20);
  Own machines(kRanks);
  for (std::uint32_t node = 0; node < kRanks; ++node) {
    const std::uint64_t count = node == fault.other ? kBytes - 1 : kBytes;
    Layout layout;
    EXPECT_EQ(make_layout(*programs.all[node], count, 1, layout), Status::kOk);
    EXPECT_EQ(machines.at(node).init(network.endpoint(node), config()), Status::kOk);
    EXPECT_EQ(
        machines.at(node).start(*programs.all[node], addresses.buffers(*programs.all[node], layout),
                                Operator(), count),
        Status::kOk);
  }
  const RunResult result = lock_step ? run_lock_step(network, machines) : run(network, machines);
  return std::string(status_name(result.status)) + " after " + std::to_string(result.seconds) +
         "\n" + causes(machines, network);
}

std::string run_paged(Programs& programs, const Fault& fault, bool lock_step,
                      std::uint32_t frames) {
  Network network(without_data(), programs.links.links(kRanks));
  if (fault.dead < kRanks) network.kill(fault.dead, 20'000);
  const AddressRange addresses(1 << 20);
  PagedMachines machines(network, programs.store, frames);
  for (std::uint32_t node = 0; node < kRanks; ++node) {
    const std::uint64_t count = node == fault.other ? kBytes - 1 : kBytes;
    Layout layout;
    EXPECT_EQ(make_layout(*programs.all[node], count, 1, layout), Status::kOk);
    EXPECT_EQ(machines.start(node, config(), addresses.buffers(*programs.all[node], layout),
                             Operator(), count),
              Status::kOk);
  }
  const RunResult result = lock_step ? run_lock_step(network, machines) : run(network, machines);
  return std::string(status_name(result.status)) + " after " + std::to_string(result.seconds) +
         "\n" + causes(machines, network);
}

TEST(PagedMachines, FailAsMachinesOfTheirOwnDo) {
  for (const char* algorithm : {"two-tree", "chain", "binomial"}) {
    Programs programs(algorithm);
    for (const bool lock_step : {false, true}) {
      for (const Fault fault : {Fault{}, Fault{6, kRanks}, Fault{kRanks, 4}, Fault{2, 9}}) {
        const std::string expected = run_own(programs, fault, lock_step);
        for (const std::uint32_t frames : {1u, 3u, 64u}) {
          EXPECT_EQ(run_paged(programs, fault, lock_step, frames), expected)
              << algorithm << (lock_step ? " in lock step, " : " freely, ") << frames << " frames";
        }
      }
    }
  }
}

TEST(PagedMachines, ReturnTheErrorsOfMachines) {
  Programs programs("two-tree");
  Network network(without_data(), programs.links.links(kRanks));
  PagedMachines machines(network, programs.store, 2);
  MachineConfig checked = config();
  checked.check_blocks = true;
  EXPECT_EQ(machines.start(0, checked, Buffers(), Operator(), kBytes), Status::kBadArgument)
      << "no blocks to check without data";
  EXPECT_EQ(machines.start(1, config(), Buffers(), Operator(), kBytes), Status::kBadArgument)
      << "no buffers";
}

TEST(Network, WithoutDataThereIsNothingToScramble) {
  Model model = without_data();
  model.poison = true;
  EXPECT_FALSE(Network::create(model, complete_links(2)));
}

}  // namespace
}  // namespace espalier::sim

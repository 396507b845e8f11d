// Machines re-opened after a failure, over every fabric: nodes do so at different times, late
// messages of the former links reach no one, and the memory of what failed is free.

#include <gtest/gtest.h>
#include <sched.h>

#include <deque>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "collectives/simulation/node_memory.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/hal/sim/network.h"
#include "espalier/internal/base/little_endian.h"
#include "tests/spares/testing/world.h"
#if ESPALIER_TEST_OFI
#include "hal/fabric/testing/local_endpoints.h"
#endif

namespace espalier::testing {
namespace {

constexpr std::uint32_t kRanks = 4;
constexpr std::uint32_t kLinkGenerations = 3;

#if ESPALIER_TEST_OFI
// Each generation has endpoints of its own, which are all opened at the start.
class OfiWorld final : public World {
 public:
  // own_addresses: each lane binds an address of its own.
  explicit OfiWorld(const std::string& provider, bool own_addresses = false) {
    ofi::FixedConfig config;
    config.provider = provider;
    if (own_addresses) {
      config.lanes = {{1, 1}};
      config.lane_addresses = {"127.4"};
    }
    config.has_secret = true;
    config.secret.fill(7);
    for (std::uint32_t g = 0; g < kLinkGenerations; ++g) {
      generations_.push_back(std::make_unique<Endpoints>(config, sim::complete_links(kRanks)));
      EXPECT_EQ(generations_.back()->error, "");
    }
  }
  [[nodiscard]] std::uint64_t deadline_ns() const override { return 400'000'000; }
  [[nodiscard]] Endpoint& endpoint(std::uint32_t node) override {
    return (*generations_[present_[node]])[node];
  }
  [[nodiscard]] bool reopen(std::uint32_t node, std::uint32_t generation) override {
    present_[node] = generation;
    return true;
  }
  void pass(std::uint64_t) override { sched_yield(); }

 private:
  using Endpoints = ofi::LocalEndpoints<ofi::FixedConfig>;
  std::vector<std::unique_ptr<Endpoints>> generations_;
  std::uint32_t present_[kRanks] = {};
};
#endif

struct FabricKind {
  std::string name;
  std::function<std::unique_ptr<World>(unsigned seed)> make;
};
std::ostream& operator<<(std::ostream& out, const FabricKind& kind) { return out << kind.name; }

class ReopenTest : public ::testing::TestWithParam<FabricKind> {
 protected:
  struct Rank {
    Machine machine;
    Endpoint* endpoint = nullptr;
    OwnedProgram program;
    std::unique_ptr<sim::NodeMemory> memory;  // on the heap so that a late write is found
    Status status = Status::kOk;
    std::uint32_t waits = 0;  // rounds of polls before it begins
    bool running = false;
  };

  void open(unsigned seed) {
    ranks_.clear();
    world_ = GetParam().make(seed);
    const Algorithm* const algorithm = find_algorithm(Collective::kAllreduce, "two-tree");
    ASSERT_NE(algorithm, nullptr);
    CollectiveParameters parameters{.ranks = kRanks};
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      Rank& rank = ranks_.emplace_back();
      ASSERT_EQ(algorithm->generate(parameters, v, rank.program), Status::kOk);
      rank.endpoint = &world_->endpoint(v);
      MachineConfig config{.deadline_ns = world_->deadline_ns()};
      ASSERT_EQ(rank.machine.init(*rank.endpoint, config), Status::kOk);
    }
  }

  void start(std::uint32_t v, std::uint64_t count) {
    Rank& rank = ranks_[v];
    Operator op{.op = Op::kSum, .type = Type::kI32};
    Layout layout;
    ASSERT_EQ(make_layout(rank.program, count, 4, layout), Status::kOk);
    rank.memory = std::make_unique<sim::NodeMemory>();
    rank.memory->allocate(rank.program, layout);
    for (std::uint64_t i = 0; i < count; ++i) {
      store_u32(&rank.memory->input()[4 * i],
                1000 * round_ + static_cast<std::uint32_t>(i % 977) + v);
    }
    const Status status = rank.machine.start(rank.program, rank.memory->buffers(), op, count);
    // It may know of the failure of a collective that it has not begun.
    ASSERT_TRUE(status == Status::kOk || status == rank.machine.cause().status);
    rank.running = true;
  }

  // Runs one collective; rank `odd` has one element more, and all fail.
  void run(std::uint64_t count, std::uint32_t odd, std::uint32_t generation, std::mt19937& random) {
    ++round_;
    for (Rank& rank : ranks_) {
      rank.running = false;
      rank.waits = random() % 4 == 0 ? random() % 200 : 0;
    }
    for (std::uint32_t round = 0;; ++round) {
      bool busy = false;
      std::uint64_t next = UINT64_MAX;
      for (std::uint32_t v = 0; v < kRanks; ++v) {
        Rank& rank = ranks_[v];
        if (!rank.running && round >= rank.waits) {
          if (generation > generations_[v]) {
            rank.memory.reset();  // of the collective that failed
            ASSERT_TRUE(world_->reopen(v, generation));
            rank.endpoint = &world_->endpoint(v);
            ASSERT_EQ(rank.machine.reopen(*rank.endpoint), Status::kOk);
            ASSERT_EQ(rank.machine.poll(), Status::kOk);
            generations_[v] = generation;
          }
          ASSERT_NO_FATAL_FAILURE(start(v, count + (v == odd ? 1 : 0)));
        }
        rank.status = rank.machine.poll();
        busy = busy || !rank.running || rank.status == Status::kBusy;
        if (rank.status == Status::kBusy) next = std::min(next, rank.machine.next_deadline());
        if (!rank.running) next = std::min(next, rank.endpoint->now() + 1000);
      }
      if (!busy) return;
      if (next > ranks_[0].endpoint->now()) world_->pass(next);
    }
  }

  void check(std::uint64_t count) {
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      ASSERT_EQ(ranks_[v].status, Status::kOk) << "rank " << v;
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto sum = static_cast<std::uint32_t>(kRanks * (1000 * round_ + i % 977) + 6);
        ASSERT_EQ(load_u32(&ranks_[v].memory->output()[4 * i]), sum)
            << "rank " << v << ", element " << i;
      }
    }
  }

  std::unique_ptr<World> world_;
  std::deque<Rank> ranks_;
  std::uint32_t generations_[kRanks] = {};
  std::uint32_t round_ = 0;
};

TEST_P(ReopenTest, GoesOnOverNewLinks) {
  constexpr std::uint64_t kCounts[] = {3, 1000, 40'000};
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::mt19937 random(seed);
    open(seed);
    for (std::uint32_t v = 0; v < kRanks; ++v) generations_[v] = 0;
    for (std::uint32_t generation = 0; generation < kLinkGenerations; ++generation) {
      for (const std::uint64_t count : kCounts) {
        ASSERT_NO_FATAL_FAILURE(run(count, kRanks, generation, random));
        check(count);
        if (HasFatalFailure()) return;
      }
      const std::uint64_t count = kCounts[random() % 3];
      const auto odd = static_cast<std::uint32_t>(random() % kRanks);
      ASSERT_NO_FATAL_FAILURE(run(count, odd, generation, random));
      for (std::uint32_t v = 0; v < kRanks; ++v) {
        EXPECT_EQ(ranks_[v].status, Status::kMismatch);
        EXPECT_EQ(ranks_[v].machine.cause().detector, ranks_[0].machine.cause().detector);
      }
    }
  }
}

TEST_P(ReopenTest, IsRefusedWhileBusy) {
  Machine blank;
  open(1);
  EXPECT_EQ(blank.reopen(*ranks_[0].endpoint), Status::kBadArgument);
  start(0, 10);
  EXPECT_EQ(ranks_[0].machine.reopen(*ranks_[0].endpoint), Status::kBadArgument);
  while (ranks_[0].machine.cause().status == Status::kOk) {
    for (Rank& rank : ranks_) (void)rank.machine.poll();
    world_->pass(ranks_[0].machine.next_deadline());
  }
  EXPECT_EQ(ranks_[0].machine.cause().status, Status::kStalled);
  EXPECT_EQ(ranks_[0].machine.reopen(*ranks_[0].endpoint), Status::kBadArgument)
      << "the cause may still be replaced";
}

// A collective that was prepared over the former links is not started over the new ones.
TEST_P(ReopenTest, EndsWhatWasPrepared) {
  open(1);
  std::mt19937 random(1);
  ASSERT_NO_FATAL_FAILURE(run(10, kRanks, 0, random));
  Rank& rank = ranks_[0];
  Operator op{.op = Op::kSum, .type = Type::kI32};
  Machine::Prepared prepared;
  ASSERT_EQ(rank.machine.prepare(rank.program, rank.memory->buffers(), op, 10, prepared),
            Status::kOk);
  ASSERT_NO_FATAL_FAILURE(run(10, 2, 0, random));
  ASSERT_TRUE(world_->reopen(0, 1));
  ASSERT_EQ(rank.machine.reopen(world_->endpoint(0)), Status::kOk);
  EXPECT_EQ(rank.machine.start(prepared), Status::kBadArgument);
}

constexpr std::uint8_t kKey[16] = {1, 2, 3};

FabricKind over_frames(const std::string& name, serial::CarrierFaults faults,
                       const std::uint8_t* key = nullptr) {
  return {name, [faults, key](unsigned seed) {
            serial::CarrierFaults own = faults;
            own.seed = seed;
            return framed_world(sim::complete_links(kRanks), kLinkGenerations, own, key);
          }};
}

FabricKind simulated(const std::string& name, std::uint64_t eager_bytes) {
  return {name, [eager_bytes](unsigned) {
            sim::Model model{.latency = 3e-5,
                             .eager_bytes = eager_bytes,
                             .poison = true,
                             .generations = kLinkGenerations};
            return simulated_world(sim::complete_links(kRanks), model);
          }};
}

std::vector<FabricKind> kinds() {
  serial::CarrierFaults late{.lose = 0.05, .repeat = 0.2, .damage = 0.02, .delay = 0.3};
  std::vector<FabricKind> all = {
      simulated("sim_rendezvous", 0),
      simulated("sim_eager", 1 << 20),
      over_frames("serial", {}),
      over_frames("serial_late", late),
      over_frames("serial_late_keyed", late, kKey),
  };
#if ESPALIER_TEST_OFI
  for (const std::string provider : {"tcp", "mem"}) {
    all.push_back(
        {provider, [provider](unsigned) { return std::make_unique<OfiWorld>(provider); }});
  }
  all.push_back(
      {"tcp_own_addresses", [](unsigned) { return std::make_unique<OfiWorld>("tcp", true); }});
#endif
  return all;
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ReopenTest, ::testing::ValuesIn(kinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace espalier::testing

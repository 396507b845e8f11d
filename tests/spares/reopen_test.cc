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

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/hal/sim/network.h"
#include "hal/serial/testing/hub.h"
#if ESPALIER_TEST_OFI
#include "hal/fabric/testing/local_endpoints.h"
#endif

namespace espalier::testing {
namespace {

constexpr std::uint32_t kRanks = 4;
constexpr std::uint32_t kLinkGenerations = 3;

// Three generations of links between all nodes.
class Fabric {
 public:
  virtual ~Fabric() = default;
  // The node's endpoint with the links of this generation, which is one above the present one.
  virtual Endpoint& open(std::uint32_t node, std::uint32_t generation) = 0;
  // Lets time pass until something arrives, or until `until`.
  virtual void pass(std::uint64_t until) = 0;
};

class SimulatedFabric final : public Fabric {
 public:
  explicit SimulatedFabric(std::uint64_t eager_bytes)
      : network_(model(eager_bytes), sim::complete_links(kRanks)) {}
  Endpoint& open(std::uint32_t node, std::uint32_t generation) override {
    if (generation > 0) {
      EXPECT_EQ(network_.reopen(node, generation), Status::kOk);
    }
    return network_.endpoint(node);
  }
  void pass(std::uint64_t until) override { (void)network_.advance(until); }

 private:
  static sim::Model model(std::uint64_t eager_bytes) {
    sim::Model model;
    model.eager_bytes = eager_bytes;
    model.generations = kLinkGenerations;
    model.latency = 3e-5;
    model.poison = true;
    return model;
  }
  sim::Network network_;
};

class SerialFabric final : public Fabric {
 public:
  SerialFabric(const serial::CarrierFaults& faults, const std::uint8_t* key)
      : hub_(channels(), faults) {
    const auto peers = sim::complete_links(kRanks);
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      SerialConfig config;
      config.session = 77 + v;
      config.key = key;
      config.nonce = 5000 + v;
      nodes_.emplace_back(hub_, v, peers[v], config);
    }
  }
  Endpoint& open(std::uint32_t node, std::uint32_t generation) override {
    SerialEndpoint& endpoint = nodes_[node].endpoint();
    if (generation > 0) endpoint.reopen(static_cast<std::uint8_t>(generation * (kRanks - 1)));
    return endpoint;
  }
  void pass(std::uint64_t until) override { (void)hub_.advance(until); }

 private:
  static std::vector<std::vector<std::uint32_t>> channels() {
    std::vector<std::vector<std::uint32_t>> all = sim::complete_links(kRanks);
    for (auto& peers : all) {
      const std::vector<std::uint32_t> once = peers;
      for (std::uint32_t g = 1; g < kLinkGenerations; ++g) {
        peers.insert(peers.end(), once.begin(), once.end());
      }
    }
    return all;
  }
  serial::Hub hub_;
  std::deque<serial::SerialNode> nodes_;
};

#if ESPALIER_TEST_OFI
// Each generation has endpoints of its own, which are all opened at the start.
class OfiFabric final : public Fabric {
 public:
  explicit OfiFabric(const std::string& provider) {
    ofi::FixedConfig config;
    config.provider = provider;
    config.has_secret = true;
    config.secret.fill(7);
    for (std::uint32_t g = 0; g < kLinkGenerations; ++g) {
      generations_.push_back(std::make_unique<Endpoints>(config, sim::complete_links(kRanks)));
      EXPECT_EQ(generations_.back()->error, "");
    }
  }
  Endpoint& open(std::uint32_t node, std::uint32_t generation) override {
    return (*generations_[generation])[node];
  }
  void pass(std::uint64_t) override { sched_yield(); }

 private:
  using Endpoints = ofi::LocalEndpoints<ofi::FixedConfig>;
  std::vector<std::unique_ptr<Endpoints>> generations_;
};
#endif

struct FabricKind {
  std::string name;
  std::uint64_t deadline_ns;  // D
  std::function<std::unique_ptr<Fabric>(unsigned seed)> make;
};
std::ostream& operator<<(std::ostream& out, const FabricKind& kind) { return out << kind.name; }

// A rank's memory of one collective, on the heap so that a late write is found.
struct CollectiveMemory {
  struct alignas(16) Slot {
    std::uint8_t bytes[16];
  };
  std::vector<std::int32_t> input, output;
  std::vector<Slot> scratch;
};

class ReopenTest : public ::testing::TestWithParam<FabricKind> {
 protected:
  struct Rank {
    Machine machine;
    Endpoint* endpoint = nullptr;
    OwnedProgram program;
    std::unique_ptr<CollectiveMemory> memory;
    Status status = Status::kOk;
    std::uint32_t waits = 0;  // rounds of polls before it begins
    bool running = false;
  };

  void open(unsigned seed) {
    ranks_.clear();
    fabric_ = GetParam().make(seed);
    const Algorithm* const algorithm = find_algorithm(Collective::kAllreduce, "two-tree");
    ASSERT_NE(algorithm, nullptr);
    CollectiveParameters parameters;
    parameters.ranks = kRanks;
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      Rank& rank = ranks_.emplace_back();
      ASSERT_EQ(algorithm->generate(parameters, v, rank.program), Status::kOk);
      rank.endpoint = &fabric_->open(v, 0);
      MachineConfig config;
      config.deadline_ns = GetParam().deadline_ns;
      ASSERT_EQ(rank.machine.init(*rank.endpoint, config), Status::kOk);
    }
  }

  void start(std::uint32_t v, std::uint64_t count) {
    Rank& rank = ranks_[v];
    rank.memory = std::make_unique<CollectiveMemory>();
    rank.memory->input.resize(count);
    rank.memory->output.assign(count, -1);
    for (std::uint64_t i = 0; i < count; ++i) {
      rank.memory->input[i] = static_cast<std::int32_t>(1000 * round_ + i % 977 + v);
    }
    Operator op;
    op.op = Op::kSum;
    op.type = Type::kI32;
    Layout layout;
    ASSERT_EQ(make_layout(rank.program, count, 4, layout), Status::kOk);
    const std::uint64_t scratch = scratch_needed(rank.program, layout);
    rank.memory->scratch.resize(scratch / 16 + 1);
    const Buffers buffers = {rank.memory->input.data(), rank.memory->output.data(),
                             rank.memory->scratch.data(), scratch};
    const Status status = rank.machine.start(rank.program, buffers, op, count);
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
            rank.endpoint = &fabric_->open(v, generation);
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
      if (next > ranks_[0].endpoint->now()) fabric_->pass(next);
    }
  }

  void check(std::uint64_t count) {
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      ASSERT_EQ(ranks_[v].status, Status::kOk) << "rank " << v;
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto sum = static_cast<std::int32_t>(kRanks * (1000 * round_ + i % 977) + 6);
        ASSERT_EQ(ranks_[v].memory->output[i], sum) << "rank " << v << ", element " << i;
      }
    }
  }

  std::unique_ptr<Fabric> fabric_;
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
    fabric_->pass(ranks_[0].machine.next_deadline());
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
  Operator op;
  op.op = Op::kSum;
  op.type = Type::kI32;
  const Buffers buffers = {rank.memory->input.data(), rank.memory->output.data(),
                           rank.memory->scratch.data(), rank.memory->scratch.size() * 16};
  Machine::Prepared prepared;
  ASSERT_EQ(rank.machine.prepare(rank.program, buffers, op, 10, prepared), Status::kOk);
  ASSERT_NO_FATAL_FAILURE(run(10, 2, 0, random));
  ASSERT_EQ(rank.machine.reopen(fabric_->open(0, 1)), Status::kOk);
  EXPECT_EQ(rank.machine.start(prepared), Status::kBadArgument);
}

constexpr std::uint8_t kKey[16] = {1, 2, 3};

FabricKind over_frames(const std::string& name, serial::CarrierFaults faults,
                       const std::uint8_t* key = nullptr) {
  return {name, 2'000'000'000, [faults, key](unsigned seed) {
            serial::CarrierFaults own = faults;
            own.seed = seed;
            return std::make_unique<SerialFabric>(own, key);
          }};
}

std::vector<FabricKind> kinds() {
  serial::CarrierFaults late;
  late.lose = 0.05;
  late.repeat = 0.2;
  late.delay = 0.3;
  late.damage = 0.02;
  std::vector<FabricKind> all = {
      {"sim_rendezvous", 1'000'000, [](unsigned) { return std::make_unique<SimulatedFabric>(0); }},
      {"sim_eager", 1'000'000, [](unsigned) { return std::make_unique<SimulatedFabric>(1 << 20); }},
      over_frames("serial", {}),
      over_frames("serial_late", late),
      over_frames("serial_late_keyed", late, kKey),
  };
#if ESPALIER_TEST_OFI
  for (const std::string provider : {"tcp", "mem"}) {
    all.push_back({provider, 400'000'000,
                   [provider](unsigned) { return std::make_unique<OfiFabric>(provider); }});
  }
#endif
  return all;
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ReopenTest, ::testing::ValuesIn(kinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace espalier::testing

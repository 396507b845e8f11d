// The cost of a simulated block message does not grow with the nodes: polls of machines and events
// of the network per message, and bytes per node, for few nodes and for eight times as many.
// Counted, not timed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "collectives/schedule/program_store.h"
#include "collectives/simulation/address_range.h"
#include "collectives/simulation/cluster.h"
#include "espalier/collectives/algorithms/algorithms.h"

namespace {
std::size_t held = 0, max_held = 0;
constexpr std::size_t kUnit = alignof(std::max_align_t);

// The size asked for is kept before each block: malloc_usable_size() depends on the heap's state.
void* take(std::size_t size, std::size_t unit) {
  const std::size_t whole = (unit + size + unit - 1) / unit * unit;
  auto* const base = static_cast<char*>(std::aligned_alloc(unit, whole));
  if (base == nullptr) throw std::bad_alloc();
  std::memcpy(base + unit - sizeof size, &size, sizeof size);
  held += size;
  max_held = std::max(max_held, held);
  return base + unit;
}

void release(void* memory, std::size_t unit) {
  if (memory == nullptr) return;
  std::size_t size = 0;
  std::memcpy(&size, static_cast<char*>(memory) - sizeof size, sizeof size);
  held -= size;
  std::free(static_cast<char*>(memory) - unit);
}
}  // namespace

void* operator new(std::size_t size) { return take(size, kUnit); }
void* operator new[](std::size_t size) { return take(size, kUnit); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory, kUnit); }
void operator delete[](void* memory) noexcept { release(memory, kUnit); }
void operator delete(void* memory, std::size_t) noexcept { release(memory, kUnit); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory, kUnit); }
void operator delete(void* memory, std::align_val_t alignment) noexcept {
  release(memory, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept {
  release(memory, static_cast<std::size_t>(alignment));
}

namespace espalier {
namespace {

constexpr BlockRule kBlocks = {0, 4096};
constexpr std::uint32_t kFew = 256, kMany = 2048;

// The cost of one run without data.
struct Cost {
  std::uint64_t messages = 0, polls = 0, events = 0;
  double polls_each = 0, events_each = 0;
  std::uint64_t bytes = 0;  // maximum held at once
};

Cost cost_of(Collective collective, const char* algorithm, std::uint32_t ranks,
             std::uint64_t blocks, bool lock_step) {
  const Algorithm* one = find_algorithm(collective, algorithm);
  CollectiveParameters parameters{.ranks = ranks, .blocks = &kBlocks, .blocks_count = 1};
  const std::size_t before = held;
  max_held = held;
  auto program = std::make_unique<Program>();
  ProgramStore store;
  sim::LinkCollector links;
  for (std::uint32_t node = 0; node < ranks; ++node) {
    program->clear();
    EXPECT_EQ(one->generate(parameters, node, *program), Status::kOk);
    store.add(*program);
    links.add(node, *program);
  }
  const std::uint64_t segments = counts_per_rank(collective) ? 1 : program->segments;
  const std::uint64_t count = segments * blocks * kBlocks.block_bytes;
  Layout layout;
  EXPECT_EQ(make_layout(*program, count, 1, layout), Status::kOk);
  EXPECT_EQ(layout.blocks, blocks);
  const sim::AddressRange addresses(2 * (layout.count + layout.segments) * layout.element_bytes);
  sim::Cluster::Options options;
  options.config.no_data = true;
  sim::Model model{.no_data = true};
  model.route = [](std::uint32_t from, std::uint32_t to) {
    return std::vector<std::uint32_t>{from, to};
  };
  sim::Cluster cluster(sim::Network(model, links.links(ranks)), store, options);
  const auto stored = std::make_unique<StoredProgram>();
  for (std::uint32_t node = 0; node < ranks; ++node) {
    store.load(node, *stored);
    EXPECT_EQ(cluster.start(node, *stored, addresses.buffers(*stored, layout), Operator(), count),
              Status::kOk);
  }
  const sim::RunResult result = lock_step ? cluster.run_lock_step(1) : cluster.run();
  EXPECT_EQ(result.status, Status::kOk) << result.message;
  Cost cost{.messages = cluster.network().blocks(),
            .polls = result.polls,
            .events = cluster.network().events()};
  const auto messages = static_cast<double>(cost.messages);
  cost.polls_each = static_cast<double>(cost.polls) / messages;
  cost.events_each = static_cast<double>(cost.events) / messages;
  cost.bytes = max_held - before;
  std::printf(
      "%s by %s, %5u ranks, N = %llu, %s: %8llu messages, %.2f polls and %.2f events each, %llu "
      "bytes\n",
      collective_name(collective), algorithm, ranks, static_cast<unsigned long long>(blocks),
      lock_step ? "in lock step" : "freely", static_cast<unsigned long long>(cost.messages),
      cost.polls_each, cost.events_each, static_cast<unsigned long long>(cost.bytes));
  return cost;
}

void expect_same_cost(Collective collective, const char* algorithm, std::uint64_t blocks,
                      double max_polls) {
  for (const bool lock_step : {true, false}) {
    const Cost few = cost_of(collective, algorithm, kFew, blocks, lock_step);
    const Cost many = cost_of(collective, algorithm, kMany, blocks, lock_step);
    EXPECT_LT(many.polls_each, 1.1 * few.polls_each);
    EXPECT_LT(many.polls_each, max_polls);
    EXPECT_EQ(many.events, 2 * many.messages) << "a block leaves its port, and is in";
    EXPECT_EQ(few.events, 2 * few.messages);
    // Beyond what any simulation takes, such as the machines that all nodes share.
    EXPECT_LT((many.bytes - few.bytes) / (kMany - kFew), 8192u) << "bytes per node";
  }
}

TEST(Scale, TwoTreeBroadcastCostsTheSamePerMessage) {
  expect_same_cost(Collective::kBroadcast, "two-tree", 64, 2.5);
}

// The blocks of a message are many more than those in flight.
TEST(Scale, MemoryDoesNotGrowWithTheMessage) {
  for (const bool lock_step : {true, false}) {
    const Cost few = cost_of(Collective::kBroadcast, "two-tree", kFew, 64, lock_step);
    const Cost many = cost_of(Collective::kBroadcast, "two-tree", kFew, 1024, lock_step);
    EXPECT_EQ(many.messages, 16 * few.messages);
    EXPECT_LT(static_cast<double>(many.bytes), 1.01 * static_cast<double>(few.bytes));
  }
}

// Almost all nodes have nothing to do in almost all steps.
TEST(Scale, ChainBroadcastCostsTheSamePerMessage) {
  expect_same_cost(Collective::kBroadcast, "chain", 4, 6);
}

// Every node has a program of its own, and all have something to do in every step.
TEST(Scale, RingAllgatherCostsTheSamePerMessage) {
  expect_same_cost(Collective::kAllgather, "ring", 1, 4);
}

}  // namespace
}  // namespace espalier

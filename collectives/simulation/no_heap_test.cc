// No allocation between boot and the last result. malloc and operator new are replaced by functions
// that abort while the guard is active. The test covers the simulated network too, which allocates
// only when it is built.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "collectives/simulation/cluster.h"
#include "espalier/collectives/algorithms/algorithms.h"

#if defined(__SANITIZE_ADDRESS__)
#define ESPALIER_OWN_MALLOC 0
#else
#define ESPALIER_OWN_MALLOC 1
#endif

namespace {
bool forbidden = false;
long allocations = 0;  // allocations that were allowed

[[maybe_unused]] void count_allocation() {
  if (forbidden) {
    forbidden = false;  // abort() may allocate
    std::fputs("allocation between boot and the last result\n", stderr);
    std::abort();
  }
  ++allocations;
}
}  // namespace

#if ESPALIER_OWN_MALLOC
// glibc's own functions under their other names.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);

void* malloc(std::size_t size) {
  count_allocation();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  count_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  count_allocation();
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count_allocation();
  return __libc_memalign(alignment, size);
}
void free(void* memory) {
  if (forbidden && memory != nullptr) count_allocation();
  __libc_free(memory);
}
}
#endif

namespace espalier {
namespace {

constexpr std::uint32_t kRanks = 8;
constexpr std::uint64_t kCount = 5000;
constexpr std::uint64_t kScratch = 1 << 20;

// All state of a collective, constructed at boot.
struct World {
  explicit World(const sim::Model& model)
      : cluster(sim::Network(model, sim::complete_links(kRanks)), {}) {
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      nodes[v].scratch.resize(kScratch / 16);
      for (auto& element : nodes[v].input) element = static_cast<float>(v + 1);
    }
  }
  struct alignas(16) Line {
    std::uint8_t bytes[16];
  };
  struct Node {
    Program program;
    std::array<float, kCount> input = {}, output = {};
    std::vector<Line> scratch;
  };
  // Plans and executes one collective. Nodes without a file plan for themselves, so planning may
  // not allocate either.
  Status run_one(const Algorithm& algorithm, std::uint64_t count) {
    CollectiveParameters parameters{.ranks = kRanks};
    Operator op{.op = Op::kSum, .type = Type::kF32};
    for (auto& node : nodes) {
      const auto me = static_cast<std::uint32_t>(&node - nodes.data());
      Status status = algorithm.generate(parameters, me, node.program);
      if (status != Status::kOk) return status;
      status = cluster.start(me, node.program,
                             {node.input.data(), node.output.data(), node.scratch.data(), kScratch},
                             op, count);
      if (status != Status::kOk) return status;
    }
    return poll_all();
  }
  Status poll_all() {
    for (;;) {
      bool busy = false;
      bool more = false;
      for (std::uint32_t v = 0; v < kRanks; ++v) {
        const Status status = cluster.machine(v).poll();
        if (status != Status::kOk && status != Status::kBusy) return status;
        busy = busy || status == Status::kBusy;
        more = more || cluster.machine(v).next_deadline() == 0;
      }
      if (!busy) return Status::kOk;
      if (!more) cluster.network().advance(cluster.network().now_ns() + 1'000'000);
    }
  }

  sim::Cluster cluster;
  std::array<Node, kRanks> nodes;
};

TEST(NoHeap, BetweenBootAndTheLastResult) {
  if (!ESPALIER_OWN_MALLOC) GTEST_SKIP() << "AddressSanitizer has its own malloc";
  ASSERT_GT(allocations, 0) << "this test's malloc is not the one in use";
  sim::Model model{.reserve = true};
  const auto world = std::make_unique<World>(model);
  int runs = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.where != Where::kAnywhere) continue;
    const bool barrier = algorithm.collective == Collective::kBarrier;
    const std::uint64_t most = counts_per_rank(algorithm.collective) ? kCount / kRanks : kCount;
    for (std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, most}) {
      if (barrier) count = 0;
      const long before = allocations;
      forbidden = true;
      const Status status = world->run_one(algorithm, count);
      forbidden = false;
      if (status == Status::kUnsupported) break;  // mirrored two trees: odd numbers of ranks only
      ASSERT_EQ(status, Status::kOk) << algorithm.name;
      ++runs;
      EXPECT_EQ(allocations, before);
      if (algorithm.collective != Collective::kAllreduce) continue;
      for (const auto& node : world->nodes) {
        for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(node.output[i], 36.0f);
      }
    }
  }
  EXPECT_GT(runs, 60);
}

TEST(NoHeapDeathTest, TheGuardWorks) {
  if (!ESPALIER_OWN_MALLOC) GTEST_SKIP() << "AddressSanitizer has its own malloc";
  EXPECT_DEATH(
      {
        forbidden = true;
        std::vector<int> some(1000);
        std::fprintf(stderr, "%d", some[7]);
      },
      "allocation between boot");
}

}  // namespace
}  // namespace espalier

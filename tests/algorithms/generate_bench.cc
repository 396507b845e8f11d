// The time that a rank takes to plan for itself: one rank of 100,000 ([SST09] section 6.4 reports
// at most 1.5 us for the two-tree's colours alone), and all ranks of 1,000,000. table/P: the
// two-tree broadcasts of all ranks, which tests/papers/precomputation.py compares with Table 1 of
// [SST07].

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "espalier/collectives/algorithms/algorithms.h"

namespace espalier {
namespace {

void one_rank(benchmark::State& state, const Algorithm* algorithm, std::uint32_t p) {
  const auto program = std::make_unique<Program>();
  const CollectiveParameters parameters{.ranks = p, .root = 1, .topology_digest = 1};
  std::uint32_t me = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(algorithm->generate(parameters, me, *program));
    benchmark::ClobberMemory();
    me = (me + 7919) % p;  // visits all kinds of ranks
  }
}

void all_ranks(benchmark::State& state, const Algorithm* algorithm, std::uint32_t p) {
  const auto program = std::make_unique<Program>();
  const CollectiveParameters parameters{.ranks = p, .root = 1, .topology_digest = 1};
  for (auto _ : state) {
    for (std::uint32_t me = 0; me < p; ++me) {
      benchmark::DoNotOptimize(algorithm->generate(parameters, me, *program));
      benchmark::ClobberMemory();
    }
  }
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  for (const espalier::Algorithm& each : espalier::algorithms()) {
    const espalier::Algorithm* algorithm = &each;
    if (algorithm->where != espalier::Where::kAnywhere) continue;
    const std::string name =
        std::string(espalier::collective_name(algorithm->collective)) + "/" + algorithm->name;
    benchmark::RegisterBenchmark((name + "/one_of_100001").c_str(), [algorithm](auto& state) {
      espalier::one_rank(state, algorithm, 100001);
    })->Unit(benchmark::kNanosecond);
    benchmark::RegisterBenchmark((name + "/all_of_1000001").c_str(), [algorithm](auto& state) {
      espalier::all_ranks(state, algorithm, 1000001);
    })->Unit(benchmark::kMillisecond);
  }
  // The sizes of Table 1 in [SST07].
  const espalier::Algorithm* broadcast =
      espalier::find_algorithm(espalier::Collective::kBroadcast, "two-tree");
  for (const std::uint32_t p : {100u, 1000u, 10000u, 100000u, 1000000u}) {
    benchmark::RegisterBenchmark(("table/" + std::to_string(p)).c_str(), [=](auto& state) {
      espalier::all_ranks(state, broadcast, p);
    })->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

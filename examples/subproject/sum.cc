// Sums one vector from each of 16 ranks with the two-tree allreduce, so that every rank has the
// sum. Runs in the simulated network; on a node, only the endpoint is another one.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/collectives/simulation/run.h"
#include "espalier/hal/sim/network.h"
#include "espalier/topology/topology.h"

namespace {

constexpr std::uint32_t kRanks = 16;
constexpr std::uint64_t kCount = 100'000;

// The state of one rank. On a board all of it is static.
struct Rank {
  espalier::Program program = {};
  espalier::Machine machine;
  std::vector<float> input, output;
  std::vector<double> scratch;  // any memory aligned to 16 bytes
};

int fail(const char* what, const char* why) {
  std::fprintf(stderr, "sum: %s: %s\n", what, why);
  return 1;
}
int fail(const char* what, espalier::Status status) {
  return fail(what, espalier::status_name(status));
}

// Element i of the rank's input. A whole number, so that the sum is exact.
float value(std::uint32_t rank, std::uint64_t i) { return static_cast<float>((rank + i) % 1000); }

}  // namespace

int main() {
  const auto topology = espalier::topology::parse("complete:16");
  if (!topology) return fail("no topology", topology.error().message.c_str());
  espalier::CollectiveParameters parameters{.ranks = kRanks,
                                            .topology_digest = (*topology)->digest()};
  const espalier::Algorithm* two_tree =
      espalier::find_algorithm(espalier::Collective::kAllreduce, "two-tree");
  const espalier::Operator sum{.op = espalier::Op::kSum, .type = espalier::Type::kF32};

  espalier::sim::Network network({}, espalier::sim::complete_links(kRanks));
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<espalier::Machine*> machines;
  for (std::uint32_t me = 0; me < kRanks; ++me) {
    Rank& rank = *ranks.emplace_back(std::make_unique<Rank>());
    espalier::Status status = two_tree->generate(parameters, me, rank.program);
    if (status != espalier::Status::kOk) return fail("no program", status);
    espalier::Layout layout;
    status = espalier::make_layout(rank.program, kCount, sizeof(float), layout);
    if (status != espalier::Status::kOk) return fail("no layout", status);
    rank.input.resize(kCount);
    rank.output.resize(kCount);
    const std::uint64_t scratch = espalier::scratch_needed(rank.program, layout);
    rank.scratch.resize((scratch + sizeof(double) - 1) / sizeof(double));
    for (std::uint64_t i = 0; i < kCount; ++i) rank.input[i] = value(me, i);
    status = rank.machine.init(network.endpoint(me), {});
    if (status != espalier::Status::kOk) return fail("no machine", status);
    const espalier::Buffers buffers{rank.input.data(), rank.output.data(), rank.scratch.data(),
                                    rank.scratch.size() * sizeof(double)};
    status = rank.machine.start(rank.program, buffers, sum, kCount);
    if (status != espalier::Status::kOk) return fail("not started", status);
    machines.push_back(&rank.machine);
  }
  const espalier::sim::RunResult result = espalier::sim::run(network, machines);
  if (result.status != espalier::Status::kOk) return fail("not finished", result.status);

  for (std::uint64_t i = 0; i < kCount; ++i) {
    float expected = 0;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) expected += value(rank, i);
    for (const auto& rank : ranks) {
      if (rank->output[i] != expected) return fail("incorrect sum", espalier::Status::kCorrupt);
    }
  }
  std::printf("%u ranks have the same correct sum of %llu floats, after %.3f ms of virtual time\n",
              kRanks, static_cast<unsigned long long>(kCount), result.seconds * 1e3);
  return 0;
}

#include "communicator/measure_network.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/digest.h"
#include "base/try.h"

namespace espalier::communicator {
namespace {

constexpr std::uint64_t kFewBytes = std::uint64_t{32} << 10;
constexpr std::uint64_t kManyBytes = std::uint64_t{128} << 10;
constexpr int kRepetitions = 3;
// Waiting adapts to short times in the first ones.
constexpr int kBatches = 12, kBarriers = 4;
constexpr std::uint64_t kLeastByteFs = 1'000;  // 1 TB/s
// Before each repetition, so that a link with a token bucket takes up tokens.
constexpr std::chrono::milliseconds kRest{3};

// The nearest of four values per octave.
std::uint64_t round(std::uint64_t value) {
  const std::uint64_t quarter = std::bit_floor(std::max<std::uint64_t>(4, value)) / 4;
  return (value + quarter / 2) / quarter * quarter;
}

// The least time of kRepetitions of the call, ns.
Result<std::uint64_t> least_time(Communicator& communicator, const Call& call) {
  std::uint64_t least_ns = UINT64_MAX;
  for (int i = 0; i < kRepetitions; ++i) {
    std::this_thread::sleep_for(kRest);
    ESPALIER_TRY(communicator.barrier());
    const std::uint64_t start_ns = monotonic_ns();
    ESPALIER_TRY(communicator.run(call));
    least_ns = std::min(least_ns, monotonic_ns() - start_ns);
  }
  return least_ns;
}

// The least time of kBarriers barriers, ns.
Result<std::uint64_t> time_barriers(Communicator& communicator) {
  std::uint64_t least_ns = UINT64_MAX;
  for (int batch = 0; batch < kBatches; ++batch) {
    const std::uint64_t start_ns = monotonic_ns();
    for (int i = 0; i < kBarriers; ++i) {
      ESPALIER_TRY(communicator.barrier());
    }
    least_ns = std::min(least_ns, monotonic_ns() - start_ns);
  }
  return least_ns;
}

// A rank's machine, and the processors that it may use there.
struct Machine {
  std::uint64_t name = 0;  // digest of its name, or of this boot of its kernel; 0: not known
  std::uint64_t cores = 1;
};

Machine this_machine(std::string name) {
  Machine machine = {0, std::max(1U, std::thread::hardware_concurrency())};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (!name.empty() || std::getline(file, name)) {
    machine.name = digest_bytes(kDigestSeed, name.data(), name.size());
  }
  return machine;
}

// Returns the processors that all ranks share; 0: they are on several machines, or are no more than
// these.
Result<std::uint32_t> find_shared_cores(Communicator& communicator, const std::string& host) {
  const Machine own = this_machine(host);
  std::vector<std::uint64_t> all(2 * std::size_t{communicator.size()});
  const std::vector<std::uint64_t> mine = {own.name, own.cores};
  ESPALIER_TRY(communicator.allgather(mine, all));
  std::uint64_t cores = own.cores;
  for (std::size_t rank = 0; rank < communicator.size(); ++rank) {
    if (all[2 * rank] == 0 || all[2 * rank] != all[0]) return 0;
    cores = std::min(cores, all[2 * rank + 1]);
  }
  return cores < communicator.size() ? static_cast<std::uint32_t>(cores) : 0;
}

}  // namespace

Result<NetworkCost> measure_network(Communicator& communicator, std::uint32_t ranks_per_host,
                                    const std::string& host) {
  const std::size_t ranks = communicator.size();
  const std::uint64_t other_hosts = ranks / ranks_per_host - 1;
  // Parts that cross a host's link.
  const std::uint64_t crossing = ranks_per_host * other_hosts;
  std::vector<std::uint8_t> part(kManyBytes / crossing + 1);
  std::vector<std::uint8_t> whole(part.size() * ranks);
  const std::span<std::uint8_t> few = std::span(part).first(kFewBytes / crossing + 1);
  const std::span<std::uint8_t> few_of_all = std::span(whole).first(few.size() * ranks);
  ESPALIER_TRY_TO(const auto gather_ns, least_time(communicator, call::gather(few, few_of_all, 0)));
  ESPALIER_TRY_TO(const auto few_ns, least_time(communicator, call::allgather(few, few_of_all)));
  ESPALIER_TRY_TO(const auto many_ns, least_time(communicator, call::allgather(part, whole)));
  ESPALIER_TRY_TO(const auto barriers_ns, time_barriers(communicator));
  const auto steps = static_cast<std::uint64_t>(std::bit_width(other_hosts));
  const std::uint64_t bytes_ns = many_ns - std::min(many_ns, few_ns);
  std::vector<std::uint64_t> costs = {barriers_ns * 1'000 / (kBarriers * steps),
                                      bytes_ns * 1'000'000 / (kManyBytes - kFewBytes), gather_ns};
  ESPALIER_TRY(communicator.allreduce(costs, Op::kMax));
  const std::uint64_t byte_fs = std::max(costs[1], kLeastByteFs);
  NetworkCost cost{.message_ps = round(costs[0]),
                   .byte_fs = round(byte_fs),
                   .burst_bytes = burst_of(byte_fs, kFewBytes, costs[2])};
  ESPALIER_TRY_TO(cost.shared_cores, find_shared_cores(communicator, host));
  cost.ranks = communicator.size();
  return cost;
}

Result<NetworkCost> measure_cables(Communicator& communicator, const RankGraph& graph,
                                   const std::string& host) {
  ESPALIER_TRY_TO(const auto barriers_ns, time_barriers(communicator));
  // Each goes into the centre and out again.
  const std::uint64_t steps = std::uint64_t{2} * kBarriers * graph.radius();
  std::vector<std::uint64_t> costs = {barriers_ns * 1'000 / steps};
  ESPALIER_TRY(communicator.allreduce(costs, Op::kMax));
  NetworkCost cost{.message_ps = round(costs[0])};
  ESPALIER_TRY_TO(cost.shared_cores, find_shared_cores(communicator, host));
  cost.ranks = communicator.size();
  return cost;
}

std::uint64_t burst_of(std::uint64_t byte_fs, std::uint64_t bytes, std::uint64_t ns) {
  constexpr std::uint64_t kFsPerNs = 1'000'000;
  const std::uint64_t at_the_rate = ns * kFsPerNs / byte_fs;
  return at_the_rate < bytes - bytes / 8 ? round((bytes - at_the_rate) / 8 * 7) : 0;
}

}  // namespace espalier::communicator

#include "communicator/measure_network.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/clock.h"

namespace espalier::communicator {
namespace {

constexpr std::uint64_t kFewBytes = std::uint64_t{32} << 10;
constexpr std::uint64_t kManyBytes = std::uint64_t{128} << 10;
constexpr int kGathers = 2;
// Waiting adapts to short times in the first ones.
constexpr int kBatches = 6, kBarriers = 4;
constexpr std::uint64_t kLeastByteFs = 1'000;  // 1 TB/s

// The nearest of four values per octave.
std::uint64_t round(std::uint64_t value) {
  const std::uint64_t quarter = std::bit_floor(std::max<std::uint64_t>(4, value)) / 4;
  return (value + quarter / 2) / quarter * quarter;
}

// The least time of `repetitions`, ns.
template <typename Run>
Result<std::uint64_t> least_time(int repetitions, Run run) {
  std::uint64_t least_ns = UINT64_MAX;
  for (int i = 0; i < repetitions; ++i) {
    const std::uint64_t start_ns = monotonic_ns();
    if (Result<void> done = run(); !done) return fail(done.error());
    least_ns = std::min(least_ns, monotonic_ns() - start_ns);
  }
  return least_ns;
}

}  // namespace

Result<NetworkCost> measure_network(Communicator& communicator, std::uint32_t ranks_per_host) {
  const std::uint64_t other_hosts = communicator.size() / ranks_per_host - 1;
  // Parts that cross a host's link.
  const std::uint64_t crossing = ranks_per_host * other_hosts;
  const std::vector<std::uint8_t> own(kManyBytes / crossing + 1);
  std::vector<std::uint8_t> all(own.size() * communicator.size());
  const auto gather = [&](std::uint64_t bytes) {
    return least_time(kGathers, [&] {
      const std::uint64_t part = bytes / crossing + 1;
      return communicator.allgather<std::uint8_t>(std::span(own).first(part),
                                                  std::span(all).first(part * communicator.size()));
    });
  };
  const auto few_ns = gather(kFewBytes);
  if (!few_ns) return fail(few_ns.error());
  const auto many_ns = gather(kManyBytes);
  if (!many_ns) return fail(many_ns.error());
  const auto barriers_ns = least_time(kBatches, [&] {
    Result<void> done;
    for (int i = 0; done && i < kBarriers; ++i) done = communicator.barrier();
    return done;
  });
  if (!barriers_ns) return fail(barriers_ns.error());
  const auto steps = static_cast<std::uint64_t>(std::bit_width(other_hosts));
  const std::uint64_t bytes_ns = *many_ns - std::min(*many_ns, *few_ns);
  std::vector<std::uint64_t> costs = {*barriers_ns * 1'000 / (kBarriers * steps),
                                      bytes_ns * 1'000'000 / (kManyBytes - kFewBytes)};
  if (auto slowest = communicator.allreduce<std::uint64_t>(costs, Op::kMax); !slowest) {
    return fail(slowest.error());
  }
  return NetworkCost{round(costs[0]), round(std::max(costs[1], kLeastByteFs))};
}

}  // namespace espalier::communicator

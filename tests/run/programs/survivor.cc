// A rank of the trials of survivors_test.py: runs allreduces until one fails, rejoins, and runs one
// more. Says `ready RANK PID` after the first allreduce, then `failed RANK MS STATUS DETECTOR PEER
// MESSAGE` and `done RANK SIZE`; or `error: ...`, `incorrect: ...`.
//
// survivor [RANKS]: over mem+tcp, with so many successive ranks on each of several emulated hosts.
// The provider is otherwise the one of FI_PROVIDER, on one host, too, or join()'s default.

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "espalier/communicator.h"
#include "tests/whole.h"

namespace espalier {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kDeadline{is_sanitized() ? 20'000 : 2'000};

// The value that every rank contributes to element i of allreduce `number`, except for its rank.
std::int64_t value(std::uint64_t number, std::uint64_t i) {
  return static_cast<std::int64_t>((number * 31 + i * 7) % 1009);
}

// An allreduce of a size that depends on its number; checks the result.
Result<void> allreduce(Communicator& communicator, std::uint64_t number) {
  constexpr std::uint64_t kCounts[] = {1, 100, 4000, 100'000};
  std::vector<std::int64_t> data(kCounts[number * 2'654'435'761 % 97 % std::size(kCounts)]);
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    data[i] = value(number, i) + communicator.rank();
  }
  auto done = communicator.allreduce(data, Op::kSum);
  if (!done) return done;
  const std::int64_t ranks = communicator.size();
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    if (data[i] == ranks * value(number, i) + ranks * (ranks - 1) / 2) continue;
    std::printf("incorrect: allreduce %llu, element %llu\n",
                static_cast<unsigned long long>(number), static_cast<unsigned long long>(i));
    std::exit(1);
  }
  return {};
}

int run(const std::string& ranks_per_host) {
  setvbuf(stdout, nullptr, _IOLBF, 4096);  // each line is one write
  JoinOptions options{.deadline = kDeadline};
  const char* const provider = std::getenv("FI_PROVIDER");
  if (provider != nullptr) options.provider = provider;
  const char* const own = std::getenv("ESPALIER_RANK");
  if (!ranks_per_host.empty() && own != nullptr) {
    options.provider = "mem+tcp";
    options.host = "host" + std::to_string(std::stoul(own) / std::stoul(ranks_per_host));
  }
  auto world = join(options);
  if (!world) {
    std::printf("error: join: %s\n", world.error().message.c_str());
    return 1;
  }
  const std::uint32_t rank = world->rank();
  Result<void> done = allreduce(*world, 0);
  if (done) std::printf("ready %u %d\n", rank, getpid());
  for (std::uint64_t number = 1; done; ++number) done = allreduce(*world, number);
  const auto now = Clock::now().time_since_epoch();
  const Cause cause = world->cause();
  std::printf("failed %u %lld %u %u %u %s\n", rank,
              static_cast<long long>(std::chrono::duration_cast<Milliseconds>(now).count()),
              static_cast<unsigned>(cause.status), cause.detector, cause.peer,
              done.error().message.c_str());
  auto again = world->rejoin();
  if (!again) {
    std::printf("error: rank %u: rejoin: %s\n", rank, again.error().message.c_str());
    return 1;
  }
  if (auto last = allreduce(*again, 3); !last) {
    std::printf("error: rank %u: allreduce of %u survivors: %s\n", rank, again->size(),
                last.error().message.c_str());
    return 1;
  }
  std::printf("done %u %u\n", rank, again->size());
  return 0;
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) { return espalier::run(argc > 1 ? argv[1] : ""); }

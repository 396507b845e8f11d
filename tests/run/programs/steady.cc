// A program that joins its job and runs collectives with ever new contents, checks each result, and
// says how many were right: what an attack or an outage must not change. It ends when the standard
// input of rank 0 does.

#include <poll.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "espalier/communicator.h"

namespace {

int fail(const std::string& what) {
  std::fprintf(stderr, "steady: %s\n", what.c_str());
  return 1;
}

}  // namespace

int main() {
  espalier::JoinOptions options{.deadline = std::chrono::seconds(10)};
  auto world = espalier::join(options);
  if (!world) return fail(world.error().message);
  const std::int64_t ranks = world->size();
  constexpr std::size_t kShort = 5;       // in the slots of the receiver
  constexpr std::size_t kLong = 100'000;  // written into its buffer
  std::int64_t rounds = 0;
  for (std::vector<std::uint8_t> goes_on = {1}; goes_on[0] != 0; ++rounds) {
    for (const std::size_t count : {kShort, kLong}) {
      std::vector<std::int64_t> sum(count);
      for (std::size_t i = 0; i < count; ++i) {
        sum[i] = rounds * 1'000'003 + static_cast<std::int64_t>(i) + world->rank();
      }
      if (auto done = world->allreduce(sum, espalier::Op::kSum); !done) {
        return fail("round " + std::to_string(rounds) + ": " + done.error().message);
      }
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t one = rounds * 1'000'003 + static_cast<std::int64_t>(i);
        if (sum[i] == ranks * one + ranks * (ranks - 1) / 2) continue;
        return fail("round " + std::to_string(rounds) + ": incorrect element " + std::to_string(i));
      }
    }
    if (world->rank() == 0 && rounds == 0) {
      std::printf("ready\n");
      std::fflush(stdout);
    }
    pollfd input = {0, POLLIN, 0};
    if (world->rank() == 0) goes_on[0] = poll(&input, 1, 0) == 0 ? 1 : 0;
    if (auto done = world->broadcast(goes_on, 0); !done) {
      return fail(done.error().message);
    }
  }
  if (world->rank() == 0) std::printf("%lld rounds right\n", static_cast<long long>(rounds));
  return 0;
}

// A rank that says when it called join() and when join() returned, for every launcher. The hosts of
// hosts.py share the clock.
//
//   member [FOLDER JOB RANK SIZE]     with arguments it joins by the shared folder
//
// Prints "called CALLED" before it joins, and "member RANK CALLED RETURNED" once all ranks have
// computed a sum: in us of the monotonic clock.

#include <time.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "espalier/communicator.h"

namespace {

std::uint64_t now_us() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec) / 1000;
}

}  // namespace

int main(int argc, char** argv) {
  espalier::JoinOptions options;
  if (argc == 5) {
    options.bootstrap.folder = argv[1];
    options.bootstrap.job = argv[2];
    options.bootstrap.rank = std::atoi(argv[3]);
    options.bootstrap.size = std::atoi(argv[4]);
  }
  const std::uint64_t called = now_us();
  std::printf("called %llu\n", static_cast<unsigned long long>(called));
  std::fflush(stdout);
  auto world = espalier::join(options);
  const std::uint64_t returned = now_us();
  if (!world) {
    std::fprintf(stderr, "member: after %.1f s: %s\n",
                 1e-6 * static_cast<double>(returned - called), world.error().message.c_str());
    return 2;
  }
  const std::uint32_t ranks = world->size();
  std::array<std::int64_t, 1> sum = {world->rank() + 1};
  if (auto done = world->allreduce(sum, espalier::Op::kSum); !done) {
    return std::fprintf(stderr, "member: %s\n", done.error().message.c_str()), 1;
  }
  if (sum[0] != std::int64_t{ranks} * (ranks + 1) / 2) {
    return std::fprintf(stderr, "member: wrong sum\n"), 1;
  }
  std::printf("member %u %llu %llu\n", world->rank(), static_cast<unsigned long long>(called),
              static_cast<unsigned long long>(returned));
  return 0;
}

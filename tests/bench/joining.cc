// The time to join a job: a program for every launcher. Rank 0 prints one line.
//
//   joining
//
// Linked with -Wl,--wrap=fi_getinfo, so that libfabric's own search for providers is not counted.

#include <sys/resource.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "espalier/communicator.h"

extern "C" {
struct fi_info;
int __real_fi_getinfo(std::uint32_t version, const char* node, const char* service,
                      std::uint64_t flags, const fi_info* hints, fi_info** info);
int __wrap_fi_getinfo(std::uint32_t version, const char* node, const char* service,
                      std::uint64_t flags, const fi_info* hints, fi_info** info);
}

namespace {

std::uint64_t now_us(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec) / 1000;
}

std::uint64_t search_us = 0;  // processor time inside fi_getinfo()

}  // namespace

int __wrap_fi_getinfo(std::uint32_t version, const char* node, const char* service,
                      std::uint64_t flags, const fi_info* hints, fi_info** info) {
  const std::uint64_t begin = now_us(CLOCK_PROCESS_CPUTIME_ID);
  const int status = __real_fi_getinfo(version, node, service, flags, hints, info);
  search_us += now_us(CLOCK_PROCESS_CPUTIME_ID) - begin;
  return status;
}

int main() {
  const std::uint64_t cpu = now_us(CLOCK_PROCESS_CPUTIME_ID);
  const std::uint64_t wall = now_us(CLOCK_MONOTONIC);
  // The first part of join(): the launcher's library, or the connection to the rendezvous server.
  auto members = espalier::bootstrap::join({});
  if (!members) return std::fprintf(stderr, "joining: %s\n", members.error().message.c_str()), 2;
  const std::uint64_t found_us = now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  espalier::JoinOptions options{.membership = *std::move(members)};
  auto world = espalier::join(options);
  if (!world) return std::fprintf(stderr, "joining: %s\n", world.error().message.c_str()), 2;
  const std::vector<std::uint64_t> mine = {now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu - search_us,
                                           found_us, search_us, now_us(CLOCK_MONOTONIC) - wall};
  std::vector<std::uint64_t> all(mine.size() * world->size());
  if (auto done = world->allgather(mine, all); !done) {
    return std::fprintf(stderr, "joining: %s\n", done.error().message.c_str()), 1;
  }
  if (world->rank() != 0) return 0;
  double sums[4] = {};
  for (std::size_t i = 0; i < all.size(); ++i) sums[i % 4] += 1e-3 * static_cast<double>(all[i]);
  const double ranks = world->size();
  std::printf(
      "espalier::join: %.1f ms of processor time per rank, %.1f of them to find the launcher, and "
      "%.1f ms in fi_getinfo; %.0f ms until it returns\n",
      sums[0] / ranks, sums[1] / ranks, sums[2] / ranks, sums[3] / ranks);
  return 0;
}

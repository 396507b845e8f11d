// How long `auto` takes to plan on one rank: choice, programs and proof, without an endpoint. Times
// are those of the processor, which other programs hardly change.
//
// planning-bench [RANKS...]    (default: 64 256 1024). `first`: no proof is cached; `cached`: as a
// second job of the same program finds it.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "communicator/schedules.h"
#include "espalier/collectives/schedule/program.h"

namespace espalier::communicator {
namespace {

constexpr std::uint32_t kMaxRanks = 1u << 16;

double cpu_ms() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

struct Planned {
  double ms = 0;
  std::string algorithm;
};

Planned plan(std::uint32_t ranks, const ScheduleRequest& request) {
  auto schedules = Schedules::make(ranks / 2, ranks, {}, {});
  if (!schedules) return {0, schedules.error().message};
  const double begin = cpu_ms();
  const auto planned = (*schedules)->obtain(request);
  return {cpu_ms() - begin, planned ? (*planned)->algorithm : planned.error().message};
}

void print(std::uint32_t ranks, Collective collective, std::uint64_t bytes, bool commutes) {
  ScheduleRequest request{.collective = collective, .bytes = bytes, .commutes = commutes};
  const Planned first = plan(ranks, request);
  const Planned cached = plan(ranks, request);
  std::printf("%5u  %-14s %8llu  %-9s %-20s %9.1f %9.1f\n", ranks, collective_name(collective),
              static_cast<unsigned long long>(bytes), commutes ? "commutes" : "in order",
              first.algorithm.c_str(), first.ms, cached.ms);
  std::fflush(stdout);
}

int run(const std::vector<std::string>& arguments) {
  std::vector<std::uint32_t> all;
  for (const std::string& text : arguments) {
    const bool is_number = !text.empty() && text.size() < 6 &&
                           text.find_first_not_of("0123456789") == std::string::npos;
    const unsigned long ranks = is_number ? std::stoul(text) : 0;
    if (ranks < 2 || ranks > kMaxRanks) {
      std::fprintf(stderr, "planning-bench: '%s'; expected numbers of ranks, from 2 to %u\n",
                   text.c_str(), kMaxRanks);
      return 2;
    }
    all.push_back(static_cast<std::uint32_t>(ranks));
  }
  if (all.empty()) all = {64, 256, 1024};
  std::string folder = (std::filesystem::temp_directory_path() / "espalier-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::fprintf(stderr, "planning-bench: cannot create '%s'\n", folder.c_str());
    return 2;
  }
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  std::printf(
      "ranks  collective        bytes  operator  algorithm             first, ms cached, ms\n");
  for (const std::uint32_t ranks : all) {
    for (const Collective collective : kAllCollectives) {
      for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{1} << 20}) {
        print(ranks, collective, bytes, true);
      }
      const bool reduces =
          collective == Collective::kReduce || collective == Collective::kAllreduce;
      if (reduces) print(ranks, collective, 1 << 20, false);
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace espalier::communicator

int main(int argc, char** argv) { return espalier::communicator::run({argv + 1, argv + argc}); }

// Measures the cost of a closed fabric: allreduces with and without a job secret, and with
// authenticated payloads, interleaved. Prints docs/results/closed.md.
//
//   closed [rounds]

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "hal/fabric/testing/collective_rank.h"
#include "hal/fabric/testing/local_endpoints.h"

namespace espalier::ofi {
namespace {

constexpr char kProvider[] = "tcp";
constexpr std::uint32_t kRanks = 2;
constexpr std::uint32_t kSets = 8;  // of endpoints, one after the other
constexpr std::uint64_t kLargeBytes = 8 << 20;

struct Size {
  std::uint64_t bytes = 0;
  std::uint32_t collectives = 0;  // per batch
};
constexpr std::array kSizes = {Size{8, 500}, Size{kLargeBytes, 2}};

struct Variant {
  const char* name;
  bool has_secret;
  bool authenticate_data;
};
// The second one is the same as the first: its ratio shows the noise.
constexpr std::array kVariants = {
    Variant{"no secret", false, false}, Variant{"no secret, again", false, false},
    Variant{"secret", true, false}, Variant{"secret, authenticated data", true, true}};

struct Times {
  double wall = 0;  // seconds per collective
  double cpu = 0;
};

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Connected ranks that one thread polls in turn, so that no time passes in waiting for a core.
class Ranks {
 public:
  explicit Ranks(const Variant& variant) {
    FixedConfig config;
    config.provider = kProvider;
    config.has_secret = variant.has_secret;
    config.secret.fill(5);
    config.authenticate_data = variant.authenticate_data;
    endpoints_ = std::make_unique<Endpoints>(config, complete_peers(kRanks));
    for (std::uint32_t v = 0; v < kRanks && endpoints_->error.empty(); ++v) {
      ranks_.push_back(std::make_unique<CollectiveRank>(kRanks, kLargeBytes / 4));
      if (ranks_[v]->init((*endpoints_)[v], 60'000'000'000) != Status::kOk ||
          !ranks_[v]->plan(Collective::kAllreduce, "two-tree")) {
        endpoints_->error = "cannot plan";
      }
    }
    if (endpoints_->error.empty()) return;
    std::fprintf(stderr, "closed: %s\n", endpoints_->error.c_str());
    std::exit(1);
  }

  Times batch(const Size& size) {
    run(size.bytes, 0);
    const std::uint64_t begin = monotonic_ns();
    const double cpu = cpu_seconds();
    for (std::uint32_t i = 1; i <= size.collectives; ++i) run(size.bytes, i);
    const double count = size.collectives;
    return {1e-9 * static_cast<double>(monotonic_ns() - begin) / count,
            (cpu_seconds() - cpu) / count};
  }

 private:
  void run(std::uint64_t bytes, std::uint32_t round) {
    for (const auto& rank : ranks_) require(rank->start(bytes / 4, round) == Status::kOk);
    for (bool busy = true; busy;) {
      busy = false;
      for (const auto& rank : ranks_) {
        const Status status = rank->poll();
        require(status == Status::kOk || status == Status::kBusy);
        busy = busy || status == Status::kBusy;
      }
    }
    for (const auto& rank : ranks_) require(rank->incorrect() == 0);
  }
  static void require(bool good) {
    if (good) return;
    std::fprintf(stderr, "closed: a collective failed\n");
    std::exit(1);
  }

  using Endpoints = LocalEndpoints<FixedConfig>;
  std::unique_ptr<Endpoints> endpoints_;
  std::vector<std::unique_ptr<CollectiveRank>> ranks_;
};

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

// What was measured with one provider and size, by variant.
struct Samples {
  std::array<std::vector<double>, kVariants.size()> wall, wall_ratio, cpu_ratio;
};

void measure(std::vector<std::unique_ptr<Ranks>>& ranks, const Size& size, std::uint32_t rounds,
             Samples& samples) {
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::array<Times, kVariants.size()> times;
    for (std::size_t i = 0; i < kVariants.size(); ++i) {
      const std::size_t variant = (i + round) % kVariants.size();
      times[variant] = ranks[variant]->batch(size);
    }
    for (std::size_t variant = 0; variant < kVariants.size(); ++variant) {
      samples.wall[variant].push_back(times[variant].wall);
      samples.wall_ratio[variant].push_back(times[variant].wall / times[0].wall);
      samples.cpu_ratio[variant].push_back(times[variant].cpu / times[0].cpu);
    }
  }
}

void print(const Size& size, const Samples& samples) {
  for (std::size_t variant = 0; variant < kVariants.size(); ++variant) {
    const auto ratio = [&](const std::vector<double>& values) {
      char text[64];
      std::snprintf(text, sizeof text, "%.3f (%.3f .. %.3f)", quantile(values, 0.5),
                    quantile(values, 0.25), quantile(values, 0.75));
      return std::string(variant == 0 ? "1" : text);
    };
    std::printf("| %s | %llu | %s | %.1f | %s | %s |\n", kProvider,
                static_cast<unsigned long long>(size.bytes), kVariants[variant].name,
                1e6 * quantile(samples.wall[variant], 0.1),
                ratio(samples.wall_ratio[variant]).c_str(),
                ratio(samples.cpu_ratio[variant]).c_str());
  }
  std::fflush(stdout);
}

int main_of(std::uint32_t rounds) {
  std::printf(
      "# Cost of a closed fabric\n\n"
      "Written by `build/tests/bench/closed >docs/results/closed.md`.\n"
      "Allreduce of %u ranks over libfabric. One thread polls all of them, so no time passes in "
      "waiting for a core, and no rank waits\nfor another: the whole path of the messages is "
      "counted. Every variant has its own endpoints, which are opened anew %u times. The variants "
      "take turns; a turn is\n%u "
      "collectives of 8 bytes or %u of 8 MiB, with their inputs and the checks of their results. "
      "There were %u rounds. A ratio\nis that of one round to the variant without a secret: median "
      "(quartiles). The second variant is the same as the first one, so\nits ratio shows the noise "
      "of the machine. [security.md](../security.md) says what is authenticated.\n\n"
      "| provider | bytes | variant | us, lowest tenth | time, ratio | CPU time, ratio |\n"
      "| --- | --- | --- | --- | --- | --- |\n",
      kRanks, kSets, kSizes[0].collectives, kSizes[1].collectives, rounds);
  std::fflush(stdout);
  std::array<Samples, kSizes.size()> samples;
  // Fresh endpoints each time: where their memory is makes a difference, too.
  for (std::uint32_t set = 0; set < kSets; ++set) {
    std::vector<std::unique_ptr<Ranks>> ranks;
    for (const Variant& variant : kVariants) ranks.push_back(std::make_unique<Ranks>(variant));
    for (std::size_t size = 0; size < kSizes.size(); ++size) {
      measure(ranks, kSizes[size], (rounds + kSets - 1) / kSets, samples[size]);
    }
  }
  for (std::size_t size = 0; size < kSizes.size(); ++size) print(kSizes[size], samples[size]);
  return 0;
}

}  // namespace
}  // namespace espalier::ofi

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 160;
  if (argc > 2 || rounds < 1) {
    std::fprintf(stderr, "usage: closed [rounds]\n");
    return 2;
  }
  return espalier::ofi::main_of(static_cast<std::uint32_t>(rounds));
}

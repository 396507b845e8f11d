// What many communicators cost the process that makes them: a rank of docs/results/footprint.md.
//
// communicators PROVIDER COUNT
//
// Splits the job into COUNT communicators of all ranks, keeps them all, runs a short collective in
// each, and ends them. Each rank prints one line of JSON: resident bytes, threads and descriptors
// more than before, when they were made and after the collectives; the microseconds of each call.
// Exit status 1: a call failed; the line has its error.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "espalier/communicator.h"

namespace espalier {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

long entries_of(const char* folder) {
  const std::filesystem::directory_iterator first(folder);
  return static_cast<long>(std::distance(first, std::filesystem::directory_iterator()));
}

struct Footprint {
  long bytes = 0, threads = 0, files = 0;

  static Footprint now() {
    return {resident_bytes(), entries_of("/proc/self/task"), entries_of("/proc/self/fd")};
  }

 private:
  // Pages of files are left out: how many the kernel maps at a first call depends on what it has in
  // its cache, and a library's code is read once, however many communicators there are.
  static long resident_bytes() {
    std::ifstream status("/proc/self/status");
    long kilobytes = 0;
    for (std::string word; status >> word;) {
      long number = 0;
      if ((word == "RssAnon:" || word == "RssShmem:") && status >> number) kilobytes += number;
    }
    return kilobytes * 1024;
  }
};

Result<void> add(Communicator& communicator) {
  std::vector<std::int64_t> sum = {1};
  if (auto done = communicator.allreduce(sum, Op::kSum); !done) return done;
  if (sum[0] != communicator.size()) return fail("an incorrect sum");
  return {};
}

class Rank {
 public:
  Rank(std::string provider, std::size_t count) : provider_(std::move(provider)), count_(count) {}

  [[nodiscard]] Result<void> measure() {
    JoinOptions options{.provider = provider_};
    auto world = join(options);
    if (!world) return fail("join: " + world.error().message);
    rank_ = world->rank();
    if (auto done = add(*world); !done) return done;
    before_ = Footprint::now();
    std::vector<Communicator> all;
    auto start = Clock::now();
    for (std::size_t i = 0; i < count_; ++i) {
      auto made = world->split(0);
      if (!made) return fail(std::to_string(i) + " made: " + made.error().message);
      all.push_back(**std::move(made));
    }
    print("make_us", microseconds_since(start));
    print("made", Footprint::now());
    start = Clock::now();
    for (std::size_t i = 0; i < count_; ++i) {
      if (auto done = add(all[i]); !done) {
        return fail(std::to_string(i) + " used: " + done.error().message);
      }
    }
    print("first_us", microseconds_since(start));
    print("used", Footprint::now());
    start = Clock::now();
    all.clear();
    if (auto done = world->barrier(); !done) return done;  // ends those that all ranks have left
    print("free_us", microseconds_since(start));
    return {};
  }

  void finish(const Result<void>& done) const {
    std::string error = done ? "" : done.error().message;
    std::replace(error.begin(), error.end(), '"', '\'');
    std::printf("{\"rank\": %u, %s\"error\": \"%s\"}\n", rank_, text_.c_str(), error.c_str());
  }

 private:
  void print(const std::string& name, double microseconds) {
    const double each = microseconds / static_cast<double>(count_);
    text_ += "\"" + name + "\": " + std::to_string(each) + ", ";
  }
  void print(const std::string& name, const Footprint& now) {
    text_ += "\"" + name + "\": {\"bytes\": " + std::to_string(now.bytes - before_.bytes) +
             ", \"threads\": " + std::to_string(now.threads - before_.threads) +
             ", \"files\": " + std::to_string(now.files - before_.files) + "}, ";
  }

  std::string provider_;
  std::size_t count_;
  std::uint32_t rank_ = 0;
  Footprint before_;
  std::string text_;
};

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) {
  const int count = argc == 3 ? std::atoi(argv[2]) : 0;
  if (count <= 0) {
    std::fprintf(stderr, "communicators: expected PROVIDER COUNT\n");
    return 2;
  }
  espalier::Rank rank(argv[1], static_cast<std::size_t>(count));
  const espalier::Result<void> done = rank.measure();
  rank.finish(done);
  return done ? 0 : 1;
}

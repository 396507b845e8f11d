// Cancels at random moments: jobs of processes over tcp, mem and mem+tcp, whose ranks end their
// communicator early, in some rounds while another rank is killed, and go on.
//
// cancel [--rounds N] [--seed S] [--page FOLDER]
//
// Default: 30 rounds, a random seed. --page writes cancel.md into the folder. Exit status 1:
// something was wrong.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/cancel/job.h"
#include "tests/options.h"

namespace espalier::cancel_test {
namespace {

constexpr char kMethod[] =
    R"(Jobs of 3 to 8 processes on one machine, over tcp, mem, and mem+tcp with two ranks on each emulated
host. In each round all ranks run random collectives: blocking, two that are started, or planned, each
result compared with the reference. One or two ranks cancel the communicator at a random moment: by the
thread that calls, by another thread while a call runs, or by a signal handler that sets a flag. In one
round of each job a rank is killed by SIGKILL, at most 0.3 ms before or after the first cancel. The
communicator is that of the whole job or, in some rounds without a kill, a part of all ranks. All ranks
that live must get the same cause, which names a rank that cancelled, or the killed one, and the same
from later calls. Then they rejoin, or go on with the communicator of the whole job.
)";

std::string row(const std::string& name, std::uint64_t value) {
  return "| " + name + " | " + std::to_string(value) + " |\n";
}

std::string milliseconds(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", static_cast<double>(ns) / 1e6);
  return text;
}

std::string page_of(const Record& record, const std::string& command) {
  std::string text =
      "# Cancels\n\nWritten by `" + command + "`.\n" + kMethod + "\n| | |\n| --- | ---: |\n";
  text += row("rounds, each with a cancel", record.rounds) +
          row("cancelled by the thread that calls", record.by_caller) +
          row("by another thread", record.by_thread) +
          row("by a signal handler's flag", record.by_signal) +
          row("rounds with two cancels", record.doubles) +
          row("on a part of the job", record.in_parts) +
          row("rounds with a kill at the same moment", record.kills) +
          row("of them with the killed rank as the cause", record.dead_links) +
          row("ranks that got a killed rank's cancel without its reason", record.without_reason) +
          row("calls with the right result, counted on each rank", record.completed) +
          row("rounds after which all ranks that lived went on", record.rejoined) + "\n";
  text +=
      "From the first cancel to the last rank's return, in rounds without a kill, where all ranks "
      "are in\n"
      "calls. There are more processes than processors:\n\n"
      "| provider | rounds | median, ms | 99th percentile, ms | longest, ms |\n"
      "| --- | ---: | ---: | ---: | ---: |\n";
  for (const auto& [provider, measured] : record.latencies_ns) {
    std::vector<std::uint64_t> sorted = measured;
    std::sort(sorted.begin(), sorted.end());
    text += "| " + provider + " | " + std::to_string(sorted.size()) + " | " +
            milliseconds(sorted[sorted.size() / 2]) + " | " +
            milliseconds(sorted[sorted.size() * 99 / 100]) + " | " + milliseconds(sorted.back()) +
            " |\n";
  }
  return text + "\n| verdict | |\n| --- | ---: |\n" + row("processes that hang", record.hangs) +
         row("other causes, wrong results, ranks that could not go on", record.findings.size());
}

int run(const std::vector<std::string>& words) {
  std::uint64_t rounds = 30, seed = std::random_device()() % 1'000'000;
  const testing::Options given("cancel", words, {"--rounds", "--seed", "--page"});
  given.read("--rounds", rounds, 1, 999'999'999);
  given.read("--seed", seed, 0, 999'999'999);
  const std::string folder = given.text("--page");
  if (given.has("--page") && !std::filesystem::is_directory(folder)) {
    given.refuse("--page: '" + folder + "' is no folder");
  }
  std::printf("%llu rounds, seed %llu\n", static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  Record record;
  for (std::uint64_t job = 0; record.rounds < rounds; ++job) run_job(draw_job(seed, job), record);
  const std::string text =
      page_of(record, "build/tests/cancel/cancel --rounds " + std::to_string(rounds) + " --seed " +
                          std::to_string(seed) + " --page docs/results");
  std::fputs(text.c_str(), stdout);
  if (!folder.empty()) std::ofstream(folder + "/cancel.md") << text;
  for (const std::string& each : record.findings) std::printf("BAD: %s\n", each.c_str());
  return record.findings.empty() ? 0 : 1;
}

}  // namespace
}  // namespace espalier::cancel_test

int main(int argc, char** argv) { return espalier::cancel_test::run({argv + 1, argv + argc}); }

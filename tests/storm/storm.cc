// Random clusters with random faults, in virtual time; every promise of the product is checked.
//
//   storm SEEDS FROM            runs the plans of seeds FROM, FROM + 1, ...
//   storm --sample SEEDS        as many from a new place, which is printed (tests/whole.h)
//   storm --page SEEDS FROM     the same as SEEDS FROM, printed as docs/results/storm.md
//   storm --plan ARGUMENTS...   runs one plan, as a failing seed prints it
//   storm --single-faults [OF]  every fault at every operation of small clusters, printed as
//                               docs/results/faults.md; or one in OF from a new place
//   storm --list-single-faults  the plans of these faults, one a line
//
// Exit status 1 if a promise was broken, 2 on bad arguments.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/storm/draw.h"
#include "tests/storm/single_faults_page.h"
#include "tests/storm/trial.h"
#include "tests/whole.h"

namespace espalier::storm {
namespace {

using Big = unsigned long long;

[[noreturn]] void usage(const std::string& text) {
  std::fprintf(stderr, "storm: %s\n", text.c_str());
  std::exit(2);
}

struct Tally {
  std::uint64_t seeds = 0, wrong = 0, messages = 0, collectives = 0, nodes = 0;
  std::uint64_t struck[kKinds] = {};
  std::map<std::string, std::uint64_t> verdicts;

  void add(const Outcome& outcome) {
    ++seeds;
    wrong += outcome.wrong.empty() ? 0 : 1;
    messages += outcome.messages;
    collectives += outcome.collectives;
    nodes += outcome.nodes;
    for (std::uint32_t kind = 0; kind < kKinds; ++kind) struck[kind] += outcome.struck[kind];
    for (const auto& [name, number] : outcome.verdicts) verdicts[name] += number;
  }
  [[nodiscard]] std::uint64_t faults() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t number : struck) sum += number;
    return sum;
  }
};

void print(const Tally& tally, double seconds) {
  std::printf("seeds %llu, wrong %llu, collectives on nodes %llu, block messages %llu\n",
              Big{tally.seeds}, Big{tally.wrong}, Big{tally.collectives}, Big{tally.messages});
  std::printf("faults %llu:", Big{tally.faults()});
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
    if (tally.struck[kind] == 0) continue;
    std::printf(" %s %llu", kind_name(static_cast<Kind>(kind)), Big{tally.struck[kind]});
  }
  std::printf("\nverdicts:");
  for (const auto& [name, number] : tally.verdicts) {
    std::printf(" %s %llu", name.c_str(), Big{number});
  }
  std::printf("\n%.1f s, %.0f seeds/s, %.0f block messages/s, %.0f faults/s\n", seconds,
              static_cast<double>(tally.seeds) / seconds,
              static_cast<double>(tally.messages) / seconds,
              static_cast<double>(tally.faults()) / seconds);
}

void print_page(const Tally& tally, std::uint64_t from, double seconds) {
  std::printf(
      "# Storm\n\n"
      "Printed by `build/tests/storm/storm --page %llu %llu`. Each seed is a cluster of 2 to %u "
      "ranks "
      "in virtual time over the simulated network. It has\n"
      "any collective, algorithm, topology, window, pace and jitter, up to three collectives one "
      "after the other, and up to five faults.\n"
      "Framed links and real endpoints are not covered. After each seed these promises are "
      "checked:\n\n"
      "- Each survivor has the right result, or a named error.\n"
      "- Survivors that can talk to each other have the same cause "
      "([two exceptions](../architecture.md#failure)).\n"
      "- The cause names a culprit that a fault explains.\n"
      "- A collective ends within twice the deadline.\n"
      "- No byte outside of the caller's buffers is written.\n"
      "- Nothing is posted after `release()`.\n\n"
      "A seed that breaks a promise prints its command, and a shorter one that fails in the same "
      "way.\n\n",
      Big{tally.seeds}, Big{from}, kMaxRanks);
  std::printf("| | |\n| --- | ---: |\n");
  const auto row = [](const std::string& name, std::uint64_t number) {
    std::printf("| %s | %llu |\n", name.c_str(), Big{number});
  };
  row("seeds", tally.seeds);
  row("seeds that broke a promise", tally.wrong);
  row("collectives, counted on each node", tally.collectives);
  row("block messages", tally.messages);
  row("faults that struck", tally.faults());
  row("seeds per second, on one core",
      static_cast<std::uint64_t>(static_cast<double>(tally.seeds) / seconds));
  row("faults per second",
      static_cast<std::uint64_t>(static_cast<double>(tally.faults()) / seconds));
  std::printf("\n| fault | times |\n| --- | ---: |\n");
  for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
    row(kind_name(static_cast<Kind>(kind)), tally.struck[kind]);
  }
  std::printf("\n| seeds that ended with | |\n| --- | ---: |\n");
  for (const auto& [name, number] : tally.verdicts) row(name, number);
}

void report(std::uint64_t seed, const Plan& plan, const Outcome& outcome, Schedules& schedules) {
  std::printf("WRONG seed %llu: %s: %s\n  storm 1 %llu\n  storm --plan %s\n", Big{seed},
              outcome.wrong_kind.c_str(), outcome.wrong.c_str(), Big{seed},
              plan_text(plan).c_str());
  std::fflush(stdout);
  const Plan shorter = shrink(plan, outcome.wrong_kind, schedules);
  std::printf("  shrunk: storm --plan %s\n", plan_text(shorter).c_str());
  std::fflush(stdout);
}

int run_seeds(std::uint64_t seeds, std::uint64_t from, bool page = false) {
  Tally tally;
  Schedules schedules;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = from; seed < from + seeds; ++seed) {
    const Schedule& schedule = schedules.drawn(seed);
    const Plan plan = draw_plan(seed, schedule);
    const Outcome outcome = run_trial(plan, schedule);
    tally.add(outcome);
    if (!outcome.wrong.empty()) report(seed, plan, outcome, schedules);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  page ? print_page(tally, from, seconds.count()) : print(tally, seconds.count());
  return tally.wrong == 0 ? 0 : 1;
}

int run_plan(const std::vector<std::string>& arguments) {
  const auto plan = parse_plan(arguments);
  if (!plan) usage(plan.error().message);
  Schedules schedules;
  std::string error;
  const Schedule* schedule = schedules.made(plan->schedule, error);
  if (schedule == nullptr) usage(error);
  if (const auto checked = check_faults(*plan, *schedule); !checked) usage(checked.error().message);
  const Outcome outcome = run_trial(*plan, *schedule);
  for (const auto& [name, number] : outcome.verdicts) std::printf("%s\n", name.c_str());
  if (!outcome.wrong.empty()) {
    std::printf("WRONG %s: %s\n", outcome.wrong_kind.c_str(), outcome.wrong.c_str());
  }
  return outcome.wrong.empty() ? 0 : 1;
}

std::uint64_t number(const std::string& text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') usage("\"" + text + "\" is not a number");
  return value;
}

int run(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "--plan") {
    return run_plan({arguments.begin() + 1, arguments.end()});
  }
  if (arguments.size() == 2 && arguments[0] == "--sample") {
    const std::uint64_t seeds = number(arguments[1]) * (whole() ? 20 : 1);
    return run_seeds(small_sample() ? seeds / 10 : seeds, sample_seed() % (1ull << 32));
  }
  if (arguments.size() == 3 && arguments[0] == "--page") {
    return run_seeds(number(arguments[1]), number(arguments[2]), true);
  }
  if (!arguments.empty() && arguments.size() <= 2 && arguments[0] == "--single-faults") {
    return run_single_faults(arguments.size() == 1 ? 1 : number(arguments[1]));
  }
  if (arguments.size() == 1 && arguments[0] == "--list-single-faults") return list_single_faults();
  if (arguments.size() != 2) {
    usage(
        "expected SEEDS FROM, --page SEEDS FROM, --sample SEEDS, --plan ARGUMENTS, --single-faults "
        "[OF] or --list-single-faults");
  }
  return run_seeds(number(arguments[0]), number(arguments[1]));
}

}  // namespace
}  // namespace espalier::storm

int main(int argc, char** argv) { return espalier::storm::run({argv + 1, argv + argc}); }

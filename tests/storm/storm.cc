// Random clusters with random faults, in virtual time; every promise of the product is checked.
//
//   storm [--over CARRIER] SEEDS FROM
//                               runs the plans of seeds FROM, FROM + 1, ... over the simulated
//                               network, or CARRIER: frames (framed links), bytes (streams), tcp,
//                               mem, mem+tcp
//   storm [--over CARRIER] --sample SEEDS
//                               as many from a new place, which is printed (tests/whole.h)
//   storm --plan ARGUMENTS...   runs one plan, as a failing seed prints it
//   storm --single-faults [OF]  every fault at every operation of small clusters, printed as
//                               docs/results/faults.md; or one in OF from a new place
//   storm --list-single-faults  the plans of these faults, one a line
//
// Exit status 1 if a promise was broken, 2 on bad arguments.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/storm/draw.h"
#include "tests/storm/single_faults_page.h"
#include "tests/storm/tally.h"
#include "tests/storm/trial.h"
#include "tests/whole.h"

namespace espalier::storm {
namespace {

[[noreturn]] void usage(const std::string& text) {
  std::fprintf(stderr, "storm: %s\n", text.c_str());
  std::exit(2);
}

std::string over_option(Over over) {
  return over == Over::kNetwork ? "" : std::string("--over ") + over_name(over) + " ";
}

void report(std::uint64_t seed, Over over, const Plan& plan, const Outcome& outcome,
            Schedules& schedules) {
  std::printf("WRONG seed %" PRIu64 ": %s: %s\n  storm %s1 %" PRIu64 "\n  storm --plan %s\n", seed,
              outcome.wrong_kind.c_str(), outcome.wrong.c_str(), over_option(over).c_str(), seed,
              plan_text(plan).c_str());
  std::fflush(stdout);
  const Plan shorter = shrink(plan, outcome.wrong_kind, schedules);
  std::printf("  shrunk: storm --plan %s\n", plan_text(shorter).c_str());
  std::fflush(stdout);
}

int run_seeds(Over over, std::uint64_t seeds, std::uint64_t from) {
  Tally tally;
  tally.over = over;
  tally.from = from;
  Schedules schedules(is_real(over) ? kMaxRealRanks : kMaxRanks);
  const std::clock_t begin = std::clock();
  for (std::uint64_t seed = from; seed < from + seeds; ++seed) {
    const Schedule& schedule = schedules.drawn(seed);
    const Plan plan = draw_plan(seed, schedule, over);
    const Outcome outcome = run_trial(plan, schedule);
    tally.add(outcome);
    if (!outcome.wrong.empty()) report(seed, over, plan, outcome, schedules);
  }
  tally.milliseconds = static_cast<std::uint64_t>(std::clock() - begin) / (CLOCKS_PER_SEC / 1000);
  std::printf("%s", tally_text(tally).c_str());
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

int run(std::vector<std::string> arguments) {
  const auto is = [&](const char* option) { return !arguments.empty() && arguments[0] == option; };
  Over over = Over::kNetwork;
  const bool has_over = is("--over");
  if (has_over) {
    if (arguments.size() < 2 || !parse_over(arguments[1], over) || over == Over::kBytes) {
      usage("expected --over network, frames, tcp, mem or mem+tcp");
    }
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (is("--sample") && arguments.size() == 2) {
    const std::uint64_t seeds = number(arguments[1]) * (whole() ? 20 : 1);
    return run_seeds(over, small_sample() ? seeds / 10 : seeds, sample_seed() % (1ull << 32));
  }
  if (arguments.size() == 2 && !arguments[0].starts_with("--")) {
    return run_seeds(over, number(arguments[0]), number(arguments[1]));
  }
  if (!has_over) {
    if (is("--plan")) return run_plan({arguments.begin() + 1, arguments.end()});
    if (is("--single-faults") && arguments.size() <= 2) {
      return run_single_faults(arguments.size() == 1 ? 1 : number(arguments[1]));
    }
    if (is("--list-single-faults") && arguments.size() == 1) return list_single_faults();
  }
  usage(
      "expected [--over CARRIER] SEEDS FROM, [--over CARRIER] --sample SEEDS, "
      "--plan ARGUMENTS, --single-faults [OF] or --list-single-faults");
}

}  // namespace
}  // namespace espalier::storm

int main(int argc, char** argv) {
  try {
    return espalier::storm::run({argv + 1, argv + argc});
  } catch (const std::runtime_error& error) {
    espalier::storm::usage(error.what());
  }
}

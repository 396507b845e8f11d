// Random programs, different at every rank, before the verifier and before brute force. Each
// accepted schedule is tried again with one of its programs broken. The record of
// docs/results/random.md, campaign.txt, goes to stdout; page.py makes the page of it.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <thread>

#include "tests/options.h"
#include "tests/random/trial.h"

namespace espalier::random {
namespace {

constexpr std::uint64_t kSample = 400;    // seeds that ./test.sh runs
constexpr std::uint64_t kBatch = 400;     // seeds between two looks at how many were accepted
constexpr std::uint64_t kReport = 10000;  // seeds between two lines of progress in a log

struct Options {
  std::uint64_t first = 1, seeds = kSample, accepted = 0;
  unsigned threads = 2;
  std::string keep;
};

Options parse(const std::vector<std::string>& words) {
  const testing::Options given("random-programs", words,
                               {"--first", "--seeds", "--accepted", "--threads", "--keep"});
  Options options;
  given.read("--first", options.first, 1, 1ull << 40);
  given.read("--seeds", options.seeds, 1, 1ull << 30);
  given.read("--accepted", options.accepted, 1, 1ull << 30);
  given.read("--threads", options.threads, 1, 64);
  options.keep = given.text("--keep");
  return options;
}

// The counts for one kind of break.
struct Broken {
  std::uint64_t tried = 0, unloaded = 0, refused = 0, refused_right = 0, unproven = 0,
                unproven_right = 0, accepted_right = 0, accepted_wrong = 0;
};

struct Tally {
  std::uint64_t seeds = 0, made = 0, accepted = 0, pipelined = 0, differ = 0, unproven = 0,
                refused = 0, runs = 0, skews = 0, windows = 0, wrong = 0;
  std::map<std::string, std::uint64_t> reasons, broken_reasons;
  std::map<std::string, Broken> broken;

  void add(const Trial& trial) {
    ++seeds;
    if (trial.whole.answer == Answer::kNone) return;
    ++made;
    runs += trial.runs;
    skews += trial.skews;
    windows += trial.windows;
    if (trial.accepted_wrong() || trial.made_wrong()) ++wrong;
    if (trial.whole.answer == Answer::kAccepted) {
      ++accepted;
      if (trial.pipelined) ++pipelined;
      if (trial.differ) ++differ;
    } else {
      ++(trial.whole.answer == Answer::kRefused ? refused : unproven);
      ++reasons[trial.whole.reason];
    }
    for (const Attempt& attempt : trial.broken) {
      const Opinion& opinion = attempt.opinion;
      add_broken(opinion, broken[attempt.kind]);
      const bool refused =
          opinion.answer != Answer::kUnloaded && opinion.answer != Answer::kAccepted;
      if (refused && opinion.wrong.empty()) ++broken_reasons[opinion.reason];
    }
  }

  static void add_broken(const Opinion& opinion, Broken& row) {
    ++row.tried;
    const bool right = opinion.wrong.empty();
    switch (opinion.answer) {
      case Answer::kUnloaded: ++row.unloaded; break;
      case Answer::kRefused: ++(right ? row.refused_right : row.refused); break;
      case Answer::kUnproven: ++(right ? row.unproven_right : row.unproven); break;
      case Answer::kLimited: ++(right ? row.unproven_right : row.accepted_wrong); break;
      default: ++(right ? row.accepted_right : row.accepted_wrong);
    }
  }
};

unsigned long long big(std::uint64_t number) { return number; }

void print_broken(const Tally& tally) {
  std::printf(
      "| broken | tried | refused by the loader | refused, wrong | refused, not found wrong | not "
      "proven for every N, wrong | not proven for every N, not found wrong | accepted, right | "
      "**accepted, wrong** |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  Broken all;
  const auto print = [](const std::string& kind, const Broken& row) {
    std::printf("| %s | %llu | %llu | %llu | %llu | %llu | %llu | %llu | %llu |\n", kind.c_str(),
                big(row.tried), big(row.unloaded), big(row.refused), big(row.refused_right),
                big(row.unproven), big(row.unproven_right), big(row.accepted_right),
                big(row.accepted_wrong));
  };
  for (const auto& [kind, row] : tally.broken) {
    print(kind, row);
    all.tried += row.tried;
    all.unloaded += row.unloaded;
    all.refused += row.refused;
    all.refused_right += row.refused_right;
    all.unproven += row.unproven;
    all.unproven_right += row.unproven_right;
    all.accepted_right += row.accepted_right;
    all.accepted_wrong += row.accepted_wrong;
  }
  print("all", all);
}

void print_reasons(const char* title, const std::map<std::string, std::uint64_t>& reasons) {
  if (reasons.empty()) return;
  std::printf("\n| %s | schedules |\n| --- | ---: |\n", title);
  for (const auto& [reason, many] : reasons) {
    std::printf("| %s | %llu |\n", reason.c_str(), big(many));
  }
}

void print(const std::string& title, const Tally& tally) {
  std::printf("\n## %s\n\n| schedules | |\n| --- | ---: |\n", title.c_str());
  const auto row = [](const char* name, std::uint64_t number) {
    std::printf("| %s | %llu |\n", name, big(number));
  };
  row("seeds", tally.seeds);
  row("seeds that make a schedule", tally.made);
  row("accepted for every N", tally.accepted);
  row("of these pipelined", tally.pipelined);
  row("of these with ranks that differ in strides, paces or instances", tally.differ);
  row("not proven for every N, nor refused", tally.unproven);
  row("refused with a counterexample, though right", tally.refused);
  row("lock-step runs, whole and broken", tally.runs);
  row("skewed runs", tally.skews);
  row("looked at near an N of up to 2^29", tally.windows);
  row("**accepted and wrong, whole or broken**", tally.wrong);
  std::printf("\n");
  print_broken(tally);
  print_reasons("whole, right, but not accepted for every N: why", tally.reasons);
  print_reasons("broken, not accepted for every N, and brute force finds nothing wrong: why",
                tally.broken_reasons);
}

// Reports a schedule that is accepted and wrong, or was made wrong; writes it to a file if asked.
void tell_wrong(const Options& options, const Trial& trial, const std::string& what,
                const Opinion& opinion, const std::vector<std::uint8_t>& bytes,
                const std::string& suffix) {
  std::string place;
  if (!options.keep.empty() && !bytes.empty()) {
    place = options.keep + "/random-" + std::to_string(trial.seed) + suffix + ".esp";
    std::ofstream file(place, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    if (!file) throw std::runtime_error("cannot write '" + place + "'");
  }
  std::fprintf(stderr, "WRONG seed %llu, %s%s: %s; verifier: %s %s\n", big(trial.seed),
               trial.name.c_str(), what.c_str(),
               opinion.wrong.empty() ? "the loader refuses it" : opinion.wrong.c_str(),
               opinion.line.empty() ? "accepts it" : opinion.line.c_str(), place.c_str());
}

void tell_wrong(const Options& options, const Trial& trial) {
  if (trial.made_wrong()) tell_wrong(options, trial, "", trial.whole, trial.file, "");
  for (const Attempt& attempt : trial.broken) {
    if (!attempt.accepted_wrong()) continue;
    tell_wrong(options, trial, ", broken: " + attempt.kind + " (" + attempt.where + ")",
               attempt.opinion, attempt.file, "-broken");
  }
}

// The trials of a batch of seeds, in their order.
std::vector<Trial> run_batch(std::uint64_t first, std::uint64_t many, unsigned threads) {
  std::vector<Trial> trials(many);
  std::atomic<std::uint64_t> next{0};
  std::vector<std::thread> workers;
  for (unsigned k = 0; k < threads; ++k) {
    workers.emplace_back([&] {
      for (std::uint64_t i = next++; i < many; i = next++) trials[i] = run_trial(first + i);
    });
  }
  for (std::thread& worker : workers) worker.join();
  return trials;
}

void print_head(const Options& options) {
  constexpr const char* kText =
      R"(# Random programs, different at every rank

Written by `build/tests/random/random-programs %s %llu >tests/random/campaign.txt`. A seed makes a correct schedule and writes every
rank's program in a different way. Each schedule that the verifier accepts for every N goes to it again with the program of one rank
changed, if a change is found in 20 attempts. One in %llu goes to it once more with a longer window at all ranks.
[verifier.md](../verifier.md), "How the verifier is judged", says how schedules are made.

Brute force runs each of these schedules until it finds an error, for numbers of blocks N that the schedule allows:

- *Accepted schedules:* in lock step, and with every message and operation held back in turn:
  - every N up to %lld (of one schedule in %llu: up to %lld);
  - N\* - 1, N\* and N\* + 1, if at most %lld; the proof expanded instances for N up to N\*;
  - %lld random N from %lld to %lld, and the last N up to %lld.
- *Refused schedules:* the same, for the N that the verifier names, every N up to %lld, %lld random ones and the last.
- *All:* under %lld random timing skews each: N = 2, and one N from 3 to %lld.
- *Pipelined schedules that are accepted for every N:* windows at the beginning, at the end and at a random place of each phase, for one N
  a little below 2^14, 2^20, 2^28, 2^29 - 1 or 2^29.

Ranks *differ* if they differ in strides, in instances per round, or in the steps that a pace adds per round.

Pipelined schedules, except in every %lluth seed, are proven for every N at once or not at all. *Not proven for every N* means that the
verifier gave a reason against such a proof, that it checked every N up to a bound instead and found no error, or that there was too
much to check.
)";
  const auto number = [](std::int64_t value) { return static_cast<long long>(value); };
  std::printf(kText, options.accepted > 0 ? "--accepted" : "--seeds",
              big(options.accepted > 0 ? options.accepted : options.seeds), big(kLonger),
              number(kAll), big(kWhole), number(kMost), number(kMost), number(kSome),
              number(kAll + 1), number(kMost), number(kMost), number(kAllRefused),
              number(kSomeRefused), number(kSkews), number(kMaxSkewed), big(kEach));
}

int run(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  Tally tally, sample;
  const auto goes_on = [&] {
    return options.accepted > 0 ? tally.accepted < options.accepted : tally.seeds < options.seeds;
  };
  while (goes_on()) {
    std::uint64_t many = kBatch;
    if (options.accepted == 0) many = std::min(many, options.seeds - tally.seeds);
    for (const Trial& trial : run_batch(options.first + tally.seeds, many, options.threads)) {
      tally.add(trial);
      if (tally.seeds == kSample) sample = tally;
      tell_wrong(options, trial);
    }
    if (terminal || tally.seeds % kReport == 0) {
      std::fprintf(stderr, "%s%llu seeds, %llu accepted, %llu wrong%s", terminal ? "\r" : "",
                   big(tally.seeds), big(tally.accepted), big(tally.wrong), terminal ? "" : "\n");
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::fprintf(stderr, "%s%.1f s\n", terminal ? "\n" : "", seconds);
  print_head(options);
  if (options.first == 1 && tally.seeds >= kSample) {
    print("The first " + std::to_string(kSample) + " seeds, which ./test.sh runs", sample);
  }
  if (tally.seeds != kSample) print("All of this run", tally);
  return tally.wrong == 0 && tally.accepted > 0 ? 0 : 1;
}

}  // namespace
}  // namespace espalier::random

int main(int argc, char** argv) {
  return espalier::random::run(espalier::random::parse({argv + 1, argv + argc}));
}

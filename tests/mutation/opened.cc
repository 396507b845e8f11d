// Opens mutated schedule files of correct checksums with the commands that read schedules:
// opened MUTANTS [SEED [FIRST]]. Each must end with status 0 or 1, or with one line and status 2.
// Machines, too, run the programs as nodes decode them, and must keep to their buffers.
// Prints the number of each, the longest processor time of a command and the peak of memory.
// With --late instead of a first number, verifies mutants whose counts change at a late N.
// Exit status: 0 all well; 1 a mutant ended otherwise; 2 bad arguments.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/topology/topology.h"
#include "tests/mutation/wild.h"
#include "tests/mutation/wild_machines.h"
#include "tools/commands/program.h"

namespace espalier::mutation {
namespace {

// With room for the pages of sanitizers.
constexpr double kMaxMegabytes = 4000;
constexpr double kMaxSeconds = 600;  // only what never ends takes so long

volatile std::sig_atomic_t current = 0;
std::string current_words;  // for the handler: what runs

[[noreturn]] void report_signal(int number) {
  dprintf(STDOUT_FILENO, "mutant %d, %s: ended by signal %d\n", static_cast<int>(current),
          current_words.c_str(), number);
  _exit(1);
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Each in a working directory with the file f and the boards. The words of `out` are written over.
constexpr const char* kCommands[] = {"draw f -o page --svg picture --show load",
                                     "draw f --svg picture --show trees",
                                     "show f",
                                     "show f --format json",
                                     "show f --blocks 5",
                                     "simulate f --bytes 1000",
                                     "simulate f --bytes 1000 --trace trace",
                                     "image build f --board boards/linux-x86_64 --release 1.0.0 "
                                     "-o image-%r",
                                     "export msccl f -o out",
                                     "export mscclpp f -o out",
                                     "export goal f --bytes 1000 -o out",
                                     "export chakra f --bytes 1000 -o out"};

// Runs a command of the list in this process, with its output in the file `said`.
int run(const char* words, int said, std::string& line) {
  std::vector<std::string> split = {"espalier"};
  for (const char* at = words; *at != '\0';) {
    const std::size_t length = std::strcspn(at, " ");
    split.emplace_back(at, length);
    at += length + (at[length] == ' ' ? 1 : 0);
  }
  std::vector<char*> arguments;
  for (std::string& word : split) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  (void)ftruncate(said, 0);
  (void)lseek(said, 0, SEEK_SET);
  dup2(nowhere, STDOUT_FILENO);
  dup2(said, STDERR_FILENO);
  const int status = tools::run_program(static_cast<int>(split.size()), arguments.data());
  std::cout.flush();
  std::fflush(nullptr);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (const int descriptor : {out, err, nowhere}) close(descriptor);
  char text[2000] = {};
  const auto size = pread(said, text, sizeof text - 1, 0);
  line.assign(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  return status;
}

struct Tally {
  std::map<std::string, std::uint64_t> ends;
  double longest = 0;
  std::string longest_words;
  int wrong = 0;

  void add(const std::string& end, double seconds, const std::string& words) {
    ++ends[end];
    if (seconds <= longest) return;
    longest = seconds;
    longest_words = words;
  }
  [[nodiscard]] int print(std::uint64_t mutants, std::uint64_t seed) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const double megabytes = static_cast<double>(usage.ru_maxrss) / 1024;
    std::printf("%llu mutants from seed %llu\n", static_cast<unsigned long long>(mutants),
                static_cast<unsigned long long>(seed));
    for (const auto& [end, times] : ends) {
      std::printf("  %-12s %llu\n", end.c_str(), static_cast<unsigned long long>(times));
    }
    std::printf("longest %.2f s of processor time: %s\npeak of memory %.0f MB\n%d wrong\n", longest,
                longest_words.c_str(), megabytes, wrong);
    return wrong == 0 && megabytes <= kMaxMegabytes && longest <= kMaxSeconds ? 0 : 1;
  }
};

// Draws the mutant's own numbers, so that each can be repeated alone.
std::mt19937_64 dice_of(std::uint64_t seed, std::uint64_t mutant) {
  return std::mt19937_64(seed * 1'000'003 + mutant);
}

int open_all(std::uint64_t mutants, std::uint64_t seed, std::uint64_t first) {
  const std::vector<WildBase> bases = wild_bases();
  const int said = open(".said", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  Tally tally;
  for (std::uint64_t mutant = first; mutant < first + mutants; ++mutant) {
    std::mt19937_64 dice = dice_of(seed, mutant);
    const WildBase& base = bases[dice() % bases.size()];
    const std::vector<std::uint8_t> file = any_mutant(base, dice);
    current = static_cast<std::sig_atomic_t>(mutant);
    if (file.empty()) {
      tally.add("no file", 0, "");
      continue;
    }
    std::ofstream("f", std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()),
               static_cast<std::streamsize>(file.size()));
    current_words = base.name + ": machines";
    if (const std::string wrong = run_machines(file); !wrong.empty()) {
      std::printf("mutant %llu, %s: %s\n", static_cast<unsigned long long>(mutant),
                  current_words.c_str(), wrong.c_str());
      ++tally.wrong;
    }
    // Always a drawing, which follows peers the furthest, and one of the others.
    for (const std::size_t command : {std::size_t{0}, 1 + dice() % (std::size(kCommands) - 1)}) {
      current_words = base.name + ": " + kCommands[command];
      const double begin = processor_seconds();
      std::string line;
      const int status = run(kCommands[command], said, line);
      tally.add("status " + std::to_string(status), processor_seconds() - begin,
                "mutant " + std::to_string(mutant) + ", " + current_words);
      const bool one_line = line.starts_with("espalier: ") && line.find('\n') == line.size() - 1;
      if (status == 0 || ((status == 1 || status == 2) && one_line)) continue;
      std::printf("mutant %llu, %s: status %d: %s\n", static_cast<unsigned long long>(mutant),
                  current_words.c_str(), status, line.c_str());
      ++tally.wrong;
    }
  }
  close(said);
  return tally.print(mutants, seed);
}

int verify_late(std::uint64_t mutants, std::uint64_t seed) {
  const std::vector<WildBase> bases = wild_bases();
  Tally tally;
  for (std::uint64_t mutant = 0; mutant < mutants; ++mutant) {
    std::mt19937_64 dice = dice_of(seed, mutant);
    const WildBase& base = bases[dice() % bases.size()];
    const Programs programs = late_mutant(base, dice);
    current = static_cast<std::sig_atomic_t>(mutant);
    current_words = base.name + ": verify";
    const auto topology = or_throw(topology::parse(base.spec));
    const double begin = processor_seconds();
    const verify::Verdict verdict = verify::verdict_of(*topology, programs);
    const std::string end = verdict.valid                      ? "valid"
                            : verdict.counterexample.too_large ? "too large"
                                                               : "refused";
    tally.add(end, processor_seconds() - begin,
              "mutant " + std::to_string(mutant) + ", " + current_words + ": " + end);
  }
  return tally.print(mutants, seed);
}

int run_campaign(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "opened: expected MUTANTS [SEED [FIRST | --late]]\n");
    return 2;
  }
  const std::uint64_t mutants = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  for (const int number : {SIGSEGV, SIGFPE, SIGABRT, SIGBUS}) std::signal(number, report_signal);
  if (argc > 3 && std::strcmp(argv[3], "--late") == 0) return verify_late(mutants, seed);
  char folder[] = "/tmp/opened-XXXXXX";
  if (mkdtemp(folder) == nullptr || chdir(folder) != 0) return 2;
  std::filesystem::create_directory_symlink(ESPALIER_BOARDS, "boards");
  const int status = open_all(mutants, seed, argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0);
  (void)chdir("/");
  std::filesystem::remove_all(folder);
  return status;
}

}  // namespace
}  // namespace espalier::mutation

int main(int argc, char** argv) { return espalier::mutation::run_campaign(argc, argv); }

// Judges the verifier: changes every single field of valid schedules and sees that no mutant passes
// that an independent interpreter finds wrong.
//
//   mutation [--ranks 2..9] [--family F] [--topology SPEC] [--sample K] [--collective C]
//            [--algorithm A] [--window W] [--skews D] [--threads T] [--seconds S]
//            [--links routed|hop-by-hop]
//
// --family is complete, mesh, fattree, crossbar, hosts or torus; all but torus if not given.
// --topology names the only topology, instead of --ranks and --family. A schedule that the
// topology's own links do not carry is judged as a routed run. --links hop-by-hop: all of these
// lowered onto the topology's links instead, on meshes, fat trees, crossbars and hosts. --sample K
// judges every K-th mutant.
// --seconds S stops taking new ranks after S seconds and says so. Exit 0 if none survives, 1 if one
// does, 2 on bad options.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

#include "base/testing/results.h"
#include "tests/mutation/edits.h"
#include "tests/mutation/judge.h"
#include "tests/options.h"

namespace espalier::mutation {
namespace {

struct Options {
  std::uint32_t first_ranks = 2, last_ranks = 9;
  std::uint32_t sample = 1, skews = 100, threads = 2, window = 8, seconds = 0;
  std::string collective, algorithm, family, topology;
  bool lowered = false;
};

Options parse(const std::vector<std::string>& words) {
  const testing::Options given(
      "mutation", words,
      {"--ranks", "--family", "--topology", "--sample", "--collective", "--algorithm", "--window",
       "--skews", "--threads", "--seconds", "--links"});
  Options options;
  if (given.has("--ranks")) {
    const std::string ranks = given.text("--ranks");
    const std::size_t dots = ranks.find("..");
    const auto number = [&](const std::string& text, std::uint32_t least) {
      return static_cast<std::uint32_t>(given.number_of("--ranks", text, least, 15));
    };
    options.first_ranks = options.last_ranks = number(ranks.substr(0, dots), 1);
    if (dots != std::string::npos) {
      options.last_ranks = number(ranks.substr(dots + 2), options.first_ranks);
    }
  }
  given.read("--sample", options.sample, 1, 1'000'000);
  given.read("--skews", options.skews, 1, 1'000'000);
  given.read("--threads", options.threads, 1, 64);
  given.read("--window", options.window, 1, 64);
  given.read("--seconds", options.seconds, 1, 1'000'000);
  options.collective = given.text("--collective");
  options.algorithm = given.text("--algorithm");
  options.family =
      given.one_of("--family", {"complete", "mesh", "fattree", "crossbar", "hosts", "torus"});
  options.lowered = given.one_of("--links", {"routed", "hop-by-hop"}) == "hop-by-hop";
  options.topology = given.text("--topology");
  if (options.topology.empty()) return options;
  if (given.has("--ranks") || given.has("--family")) {
    given.refuse("--topology names the only topology: --ranks and --family have no use");
  }
  const auto topology = topology::parse(options.topology);
  if (!topology) given.refuse("--topology: " + topology.error().message);
  return options;
}

struct Row {
  std::uint64_t refused = 0, killed = 0, equivalent = 0, survived = 0;
  std::string example;  // of an equivalent one

  void add(Fate fate) {
    ++(fate == Fate::kRefused      ? refused
       : fate == Fate::kKilled     ? killed
       : fate == Fate::kEquivalent ? equivalent
                                   : survived);
  }
  [[nodiscard]] std::uint64_t all() const { return refused + killed + equivalent + survived; }
};

// How many killed mutants the interpreter was asked about, and how many it finds wrong too.
struct Opinion {
  std::uint64_t asked = 0, wrong = 0;
  std::string example;  // of one that only the verifier finds wrong
};

struct Report {
  std::map<std::string, Row> rows;          // by class: where, field
  std::map<std::string, Row> families;      // by family of topologies
  std::map<std::string, Opinion> opinions;  // by property
  std::vector<std::string> survivors;
  std::uint64_t mutants = 0, plays_run = 0, plays_known = 0;
};

// The changed descriptor in full.
std::string in_full(const Program& program) {
  std::vector<std::uint8_t> bytes(2 * kMaxDescriptorBytes);
  std::size_t size = 0;
  std::string text = "descriptor of node " + std::to_string(program.node) + ":";
  if (encode_program(program, bytes.data(), bytes.size(), size) != Status::kOk) size = 0;
  for (std::size_t k = 0; k < size; ++k) {
    char hex[4];
    std::snprintf(hex, sizeof hex, " %02x", static_cast<unsigned>(bytes[k]));
    text += hex;
  }
  return text;
}

// One schedule's mutants: of one rank's program (any field), or of all ranks' alike.
struct Task {
  const Schedule* schedule = nullptr;
  std::uint32_t rank = 0;
  Scope scope = Scope::kRank;
};

class Worker {
 public:
  Worker(const Options& options, Report& report, std::mutex& lock)
      : options_(options), judge_(options.skews), report_(report), lock_(lock) {}

  ~Worker() {
    const std::lock_guard<std::mutex> guard(lock_);
    report_.plays_run += judge_.plays_run();
    report_.plays_known += judge_.plays_known();
  }

  void run(const Task& task, std::uint64_t salt) {
    const Programs& programs = task.schedule->programs;
    const std::size_t edits = count_edits(programs[task.rank], task.scope);
    std::vector<std::uint32_t> changed{task.rank};
    if (task.scope == Scope::kShared) {
      for (std::uint32_t rank = 1; rank < programs.size(); ++rank) changed.push_back(rank);
    }
    for (std::size_t i = salt % options_.sample; i < edits; i += options_.sample) {
      Programs mutant = programs;
      Edit edit;
      bool changes = false;
      for (const std::uint32_t rank : changed) {
        changes = make_edit(mutant[rank], task.scope, i, edit) || changes;
      }
      if (changes) judge(task, mutant, changed, edit);
    }
  }

 private:
  void judge(const Task& task, Programs& mutant, const std::vector<std::uint32_t>& changed,
             const Edit& edit) {
    const Judgement judgement = judge_.judge(*task.schedule, mutant, changed);
    const bool everywhere = task.scope == Scope::kShared;
    const std::string what = task.schedule->name + ", " +
                             (everywhere ? "all ranks" : "rank " + std::to_string(task.rank)) +
                             ": " + edit.field + " " + edit.change;
    std::string opinion;
    // Now and then: does the interpreter, too, find fault with a mutant that the verifier kills?
    const bool ask = judgement.fate == Fate::kKilled && ++killed_ % 16 == 0;
    if (ask) opinion = judge_.second_opinion(*task.schedule, mutant, judgement.counterexample);
    const std::lock_guard<std::mutex> guard(lock_);
    ++report_.mutants;
    Row& row = report_.rows[(everywhere ? "all ranks: " : "") + edit.field];
    if (judgement.fate == Fate::kEquivalent && row.equivalent == 0) row.example = what;
    row.add(judgement.fate);
    report_.families[task.schedule->family()].add(judgement.fate);
    if (judgement.fate == Fate::kSurvived) {
      report_.survivors.push_back(what + ": " + judgement.reason + "\n  " +
                                  in_full(mutant[task.rank]));
    }
    if (!ask) return;
    Opinion& tally = report_.opinions[verify::property_name(judgement.counterexample.property)];
    ++tally.asked;
    if (!opinion.empty()) {
      ++tally.wrong;
    } else if (tally.example.empty()) {
      tally.example = what + "; verifier: " + judgement.reason;
    }
  }

  const Options& options_;
  Judge judge_;
  Report& report_;
  std::mutex& lock_;
  std::uint64_t killed_ = 0;
};

// In ascending order.
std::vector<std::uint32_t> prime_factors(std::uint32_t number) {
  std::vector<std::uint32_t> factors;
  for (std::uint32_t k = 2; number > 1; number % k == 0 ? number /= k : ++k) {
    if (number % k == 0) factors.push_back(k);
  }
  return factors;
}

// "2x2x3"
std::string text_of(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (const std::uint32_t number : numbers) {
    text += (text.empty() ? "" : "x") + std::to_string(number);
  }
  return text;
}

// The topologies with this number of ranks: complete; the squarest mesh; fat trees of the smallest
// arity with thin and with full upper branches; fat trees whose arities are the prime factors, if
// they differ, in both orders; a crossbar of two levels, at least as many modules as each has
// ranks; a crossbar whose sizes are the prime factors, if there are three or more; hosts, as the
// modules. Only if named: the squarest torus and a ring.
std::vector<std::string> specs_of(std::uint32_t ranks, const std::string& family) {
  std::vector<std::string> specs;
  const std::vector<std::uint32_t> factors = prime_factors(ranks);
  if (family.empty() || family == "complete") specs.push_back("complete:" + std::to_string(ranks));
  std::uint32_t rows = 1;
  for (std::uint32_t r = 2; r * r <= ranks; ++r) rows = ranks % r == 0 ? r : rows;
  if (family.empty() || family == "mesh") {
    specs.push_back("mesh:" + std::to_string(rows) + "x" + std::to_string(ranks / rows));
  }
  if (family == "torus") {
    specs.push_back("torus:" + std::to_string(rows) + "x" + std::to_string(ranks / rows));
    specs.push_back("ring:" + std::to_string(ranks));
  }
  const std::string modules = text_of({ranks / rows, rows});
  if (family.empty() || family == "hosts") specs.push_back("hosts:" + modules);
  if (family.empty() || family == "crossbar") {
    specs.push_back("crossbar:" + modules);
    if (factors.size() > 2) specs.push_back("crossbar:" + text_of(factors));
  }
  if (family.empty() || family == "fattree") {
    std::uint32_t arity = ranks, height = 1;
    for (std::uint32_t k = 2; k * k <= ranks; ++k) {
      std::uint32_t power = k, levels = 1;
      for (; power < ranks; power *= k) ++levels;
      if (power == ranks && arity == ranks) arity = k, height = levels;
    }
    const std::string tree =
        "fattree:k=" + std::to_string(arity) + ",h=" + std::to_string(height) + ",c=";
    if (arity > 1) specs.push_back(tree + "1");
    if (height > 1) specs.push_back(tree + "k");
    if (!factors.empty() && factors.front() != factors.back()) {
      specs.push_back("fattree:k=" + text_of(factors) + ",c=1");
      specs.push_back("fattree:k=" + text_of({factors.rbegin(), factors.rend()}) + ",c=1");
    }
  }
  return specs;
}

std::vector<Schedule> make_schedules(const Options& options) {
  std::vector<std::string> specs;
  if (!options.topology.empty()) specs.push_back(options.topology);
  for (std::uint32_t ranks = options.first_ranks;
       options.topology.empty() && ranks <= options.last_ranks; ++ranks) {
    for (const std::string& spec : specs_of(ranks, options.family)) specs.push_back(spec);
  }
  std::vector<Schedule> schedules;
  for (const std::string& spec : specs) {
    const auto topology = or_throw(topology::parse(spec));
    const std::uint32_t ranks = topology->ranks();
    const auto make = options.lowered ? for_lowered_schedules : for_schedules;
    make(*topology, {0, 1 % ranks, ranks - 1}, options.window, [&](Made made) {
      if (!options.algorithm.empty() && options.algorithm != made.algorithm) return;
      if (!options.collective.empty() && options.collective != collective_name(made.collective)) {
        return;
      }
      schedules.push_back(make_schedule(spec, std::move(made)));
    });
  }
  return schedules;
}

void print_row(const std::string& name, const Row& row) {
  const auto big = [](std::uint64_t number) { return static_cast<unsigned long long>(number); };
  std::printf("%-34s %9llu %9llu %9llu %9llu %9llu\n", name.c_str(), big(row.all()),
              big(row.refused), big(row.killed), big(row.equivalent), big(row.survived));
}

void print(const Report& report) {
  std::printf("%-34s %9s %9s %9s %9s %9s\n", "class", "mutants", "loader", "verifier", "equival.",
              "survived");
  for (const auto& [field, row] : report.rows) print_row(field, row);
  Row sum;
  for (const auto& [family, row] : report.families) {
    print_row("on " + family, row);
    sum.refused += row.refused;
    sum.killed += row.killed;
    sum.equivalent += row.equivalent;
    sum.survived += row.survived;
  }
  print_row("all", sum);
  std::printf("\n");
  std::printf("equivalent, an example of each class:\n");
  for (const auto& [field, row] : report.rows) {
    if (row.equivalent > 0) std::printf("  %s\n", row.example.c_str());
  }
  std::printf("\nkilled by the verifier, every 16th put before the interpreter:\n");
  for (const auto& [property, opinion] : report.opinions) {
    std::printf("  %-10s %llu of %llu wrong there too%s%s\n", property.c_str(),
                static_cast<unsigned long long>(opinion.wrong),
                static_cast<unsigned long long>(opinion.asked),
                opinion.example.empty() ? "" : "; not: ", opinion.example.c_str());
  }
  for (const std::string& survivor : report.survivors) {
    std::printf("SURVIVED %s\n", survivor.c_str());
  }
}

int run(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const std::vector<Schedule> schedules = make_schedules(options);
  std::vector<Task> tasks;
  for (const Schedule& schedule : schedules) {
    tasks.push_back({&schedule, 0, Scope::kShared});
    for (std::uint32_t rank = 0; rank < schedule.programs.size(); ++rank) {
      tasks.push_back({&schedule, rank, Scope::kRank});
    }
  }
  if (tasks.empty()) {
    std::cerr << "mutation: no schedule fits the topologies, --collective and --algorithm\n";
    return 2;
  }
  Report report;
  std::mutex lock;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  std::vector<std::thread> threads;
  for (std::uint32_t k = 0; k < options.threads; ++k) {
    threads.emplace_back([&] {
      Worker worker(options, report, lock);
      for (;;) {
        if (options.seconds > 0 && seconds() > options.seconds) break;
        const std::size_t at = next++;
        if (at >= tasks.size()) break;
        worker.run(tasks[at], at);
        if (++done; isatty(STDERR_FILENO) != 0) {
          std::fprintf(stderr, "\r%zu of %zu ranks", done.load(), tasks.size());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r%24s\r", "");
  print(report);
  std::printf(
      "\n%zu schedules, %llu mutants in %.1f s; the interpreter ran %llu plays of %u skews,"
      " and knew %llu\n",
      schedules.size(), static_cast<unsigned long long>(report.mutants), seconds(),
      static_cast<unsigned long long>(report.plays_run), options.skews,
      static_cast<unsigned long long>(report.plays_known));
  if (options.sample > 1) std::printf("sampled: every %uth mutant\n", options.sample);
  if (done < tasks.size()) {
    std::printf("stopped by --seconds: %zu of %zu ranks judged\n", done.load(), tasks.size());
  }
  const bool right = report.survivors.empty() && report.mutants > 0;
  std::printf("%s\n", right ? "none survived" : "FAILED");
  return right ? 0 : 1;
}

}  // namespace
}  // namespace espalier::mutation

int main(int argc, char** argv) {
  return espalier::mutation::run(espalier::mutation::parse({argv + 1, argv + argc}));
}

// espalier tune: runs the candidates that a model predicts to be near the best, and writes what
// they took into the model, so that `auto` takes what was fastest.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "tools/cluster/start_cluster.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/common/numbers.h"
#include "tools/common/schedules.h"
#include "tools/options/resolve.h"
#include "tools/run/schedules.h"

namespace espalier::tools {
namespace {

using predict::Picoseconds;
using predict::Tuning;
using run_command::RunOptions;
using run_command::RunResult;
using run_command::ScheduleRun;

// Candidates that are predicted to take at most this many times the best time are run.
constexpr Picoseconds kNear = 3;
// Messages that are predicted to take longer differ less from start to start: they are repeated
// less often, and not in every round.
constexpr Picoseconds kLong = 10'000'000'000;  // ps
constexpr std::uint32_t kLongRepeat = 2, kLongRounds = 5;
constexpr std::uint64_t kMaxTunedBytes = std::uint64_t{1} << 30;

struct TuneArguments {
  std::string topology, output;
  std::vector<std::string> collectives;
  std::vector<std::string> sizes = {"8", "1KiB", "16KiB", "64KiB", "512KiB", "4MiB"};
  std::vector<std::uint64_t> bytes;  // of `sizes`
  std::uint32_t rounds = 15;
  Format format = Format::kText;
  RunOptions run;
};

// One candidate's runs of one size.
struct CandidateRuns {
  std::size_t candidate = 0;
  std::string name;
  Picoseconds predicted = 0;
  std::vector<double> seconds;

  [[nodiscard]] double time() const { return median(seconds); }
  [[nodiscard]] bool is_long() const { return predicted > kLong; }
  [[nodiscard]] std::uint32_t permille() const {
    const double factor = time() / (static_cast<double>(predicted) * 1e-12) * 1000;
    return static_cast<std::uint32_t>(
        std::clamp<double>(std::round(factor), 1, predict::kMaxTuningPermille));
  }
};
// All candidates of one size that are run, the fastest by prediction first.
struct TunedSize {
  std::uint64_t bytes = 0;
  std::vector<CandidateRuns> all;

  [[nodiscard]] const CandidateRuns& fastest() const {
    return *std::min_element(
        all.begin(), all.end(),
        [](const CandidateRuns& a, const CandidateRuns& b) { return a.time() < b.time(); });
  }
};

// The sizes of one collective: where counts are per rank, one rank's part of them.
std::vector<std::uint64_t> sizes_of(const TuneArguments& arguments, const Program& program) {
  if (program.collective == Collective::kBarrier) return {0};
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t bytes : arguments.bytes) {
    const std::uint64_t part = counts_per_rank(program.collective) ? bytes / program.ranks : bytes;
    sizes.push_back(std::max<std::uint64_t>(8, part / 8 * 8));  // whole elements
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

class CollectiveTuning {
 public:
  CollectiveTuning(const TuneArguments& arguments, planner::Choice choice)
      : arguments_(arguments), choice_(std::move(choice)) {
    const planner::Candidate& any = *std::find_if(
        choice_.candidates().begin(), choice_.candidates().end(),
        [](const planner::Candidate& candidate) { return !candidate.programs.empty(); });
    for (const std::uint64_t bytes : sizes_of(arguments, any.programs.front())) {
      TunedSize& size = sizes_.emplace_back();
      size.bytes = bytes;
      const planner::Ranking ranking =
          or_bad_input(choice_.rank(bytes, true));  // a tuned model replays all, too
      for (const planner::Estimate& one : ranking.estimates) {
        if (one.time / kNear > ranking.best().time) break;
        size.all.push_back({one.candidate,
                            choice_.candidates()[one.candidate].name,
                            std::max<Picoseconds>(1, one.time),
                            {}});
      }
    }
  }

  void measure() {
    for (std::uint32_t round = 0; round < arguments_.rounds; ++round) {
      for (std::size_t i = 0; i < choice_.candidates().size(); ++i) {
        run(i, false);
        if (round % kLongRounds == 0) run(i, true);
      }
    }
  }

  [[nodiscard]] const std::vector<TunedSize>& sizes() const { return sizes_; }

  // What the model is to know.
  [[nodiscard]] Tuning tuning() const {
    const planner::PlanRequest& plan = choice_.request().plan;
    Tuning tuning{plan.topology->spec(), collective_name(plan.collective), {}};
    for (const TunedSize& size : sizes_) {
      Tuning::Size& at = tuning.sizes.emplace_back();
      at.bytes = size.bytes;
      for (const CandidateRuns& one : size.all) at.factors.push_back({one.name, one.permille()});
    }
    return tuning;
  }

 private:
  // Starts the nodes of one candidate, and runs the sizes for which it is near the best.
  void run(std::size_t candidate, bool is_long) {
    std::vector<CandidateRuns*> wanted;
    ScheduleRun run;
    for (TunedSize& size : sizes_) {
      for (CandidateRuns& one : size.all) {
        if (one.candidate != candidate || one.is_long() != is_long) continue;
        wanted.push_back(&one);
        run.bytes.push_back(size.bytes);
      }
    }
    if (wanted.empty()) return;
    run.schedule =
        load_schedule("compiled", compile(*choice_.candidates()[candidate].schedule), "");
    RunOptions options = arguments_.run;
    const planner::PlanRequest& plan = choice_.candidates()[candidate].plan;
    options.plan = {arguments_.topology, collective_name(plan.collective), plan.algorithm->name};
    if (is_long) {
      options.repeat = std::min(options.repeat, kLongRepeat);
      options.warmup = 1;
    }
    const RunResult result = run_command::run_schedule(options, run, "");
    if (!result.right) {
      negative(wanted.front()->name + " of " + options.plan.collective +
               ": a node failed or a result is wrong; 'espalier run' shows it");
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::vector<double>& times = result.sizes[i].times;
      wanted[i]->seconds.insert(wanted[i]->seconds.end(), times.begin(), times.end());
    }
  }

  const TuneArguments& arguments_;
  planner::Choice choice_;
  std::vector<TunedSize> sizes_;
};

std::string size_text(const std::string& collective, const TunedSize& size) {
  const CandidateRuns& taken = size.all.front();
  const CandidateRuns& fastest = size.fastest();
  char line[256];
  std::snprintf(line, sizeof line, "%-14s %10llu  %-32s %12s  %-32s %12s\n", collective.c_str(),
                static_cast<unsigned long long>(size.bytes), taken.name.c_str(),
                seconds_text(taken.time()).c_str(),
                &taken == &fastest ? "the same" : fastest.name.c_str(),
                seconds_text(fastest.time()).c_str());
  return line;
}

Json size_json(const std::string& collective, const TunedSize& size) {
  Json row = {{"collective", collective}, {"bytes", size.bytes}};
  row["candidates"] = Json::array();
  for (const CandidateRuns& one : size.all) {
    row["candidates"].push_back({{"candidate", one.name},
                                 {"predicted_ps", one.predicted},
                                 {"measured_s", one.time()},
                                 {"permille", one.permille()}});
  }
  return row;
}

planner::ChoiceRequest request_for(const TuneArguments& arguments, const predict::Model& model,
                                   const std::string& collective) {
  planner::ChoiceRequest request;
  request.plan = plan_request({arguments.topology, collective});
  request.op = operator_of(request.plan.collective, {});
  request.model = model;
  // Factors are of the prediction without them.
  request.model.tunings.clear();
  request.conditions = run_conditions(arguments.run, model, request.plan.topology->nodes());
  return request;
}

// All collectives, or those of --collective. Throws Failure (bad input).
std::vector<std::string> collectives_of(const TuneArguments& arguments) {
  (void)parse_topology(arguments.topology);
  std::vector<std::string> all;
  for (const std::string& name : arguments.collectives) {
    (void)collective_of(name);
    if (std::find(all.begin(), all.end(), name) != all.end()) {
      bad_input("--collective names " + one_line(name) + " twice; expected each once");
    }
    all.push_back(name);
  }
  if (!all.empty()) return all;
  for (const planner::AlgorithmEntry& entry : planner::algorithm_entries()) {
    const std::string name = collective_name(entry.collective);
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  }
  return all;
}

// Null, and a line on stderr that says why: no algorithm can do the collective, which was not
// named. Throws Failure (bad input) if it was.
std::unique_ptr<CollectiveTuning> start_tuning(const TuneArguments& arguments,
                                               const predict::Model& model,
                                               const std::string& collective) {
  try {
    return std::make_unique<CollectiveTuning>(
        arguments, or_bad_input(planner::Choice::make(request_for(arguments, model, collective))));
  } catch (const Failure& failure) {
    if (!arguments.collectives.empty()) throw;
    std::fprintf(stderr, "espalier: not tuned: %s\n", one_line(failure.line).c_str());
    return nullptr;
  }
}

void run_tune(TuneArguments arguments) {
  check_writable(arguments.output);
  find_node(arguments.run.launch);
  predict::Model model = run_model(arguments.run);
  for (const std::string& text : arguments.sizes) {
    arguments.bytes.push_back(byte_count("--bytes", text, kMaxTunedBytes));
  }
  const std::vector<std::string> collectives = collectives_of(arguments);
  (void)ranks_per_host(arguments.run.ranks_per_host, model);
  const bool is_text = arguments.format == Format::kText;
  if (is_text) {
    std::printf("%-14s %10s  %-32s %12s  %-32s %12s\n", "collective", "bytes", "auto took", "time",
                "fastest", "time");
  }
  Json rows = Json::array();
  for (const std::string& collective : collectives) {
    const auto one = start_tuning(arguments, model, collective);
    if (one == nullptr) continue;
    one->measure();
    for (const TunedSize& size : one->sizes()) {
      if (is_text) std::fputs(size_text(collective, size).c_str(), stdout);
      rows.push_back(size_json(collective, size));
    }
    std::fflush(stdout);
    Tuning tuning = one->tuning();
    std::erase_if(model.tunings, [&tuning](const Tuning& old) {
      return old.topology == tuning.topology && old.collective == tuning.collective;
    });
    model.tunings.push_back(std::move(tuning));
  }
  const std::string text = predict::model_text(model);
  write_file(arguments.output, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  if (!is_text) print_json(rows);
}

constexpr const char* kTuneExamples =
    "For each collective and size, runs every candidate that the model predicts to take at most\n"
    "three times the best time, in turn, and prints what auto took by the model and which was the\n"
    "fastest. The new model has, for this topology, the factor between the measured and the\n"
    "predicted time of each; by it auto takes what was fastest (docs/choosing.md).\n"
    "Examples:\n"
    "  espalier measure --provider tcp -o tcp.textproto\n"
    "  espalier tune --topology complete:8 --model tcp.textproto -o tuned.textproto\n"
    "  espalier tune --topology complete:8 --collective allreduce --bytes 1KiB,1MiB \\\n"
    "      --model tuned.textproto -o tuned.textproto\n"
    "  espalier explain --topology complete:8 --collective allreduce --model tuned.textproto\n"
    "Exit status: 0 done; 1 a wrong result or a failed node; 2 bad input.";

}  // namespace

void add_tune(Command app) {
  Command command =
      app.add_command("tune", "Runs the candidates near the best, and adds their times to a model");
  const auto arguments = std::make_shared<TuneArguments>();
  RunOptions& run = arguments->run;
  run.repeat = 8;
  run.warmup = 2;
  command.text("--topology", arguments->topology, "The topology of the nodes").required();
  command.text("--model", run.model, "A model that 'espalier measure -o' wrote").required();
  command.text("-o,--output", arguments->output, "Write the model with the times into this file")
      .required();
  command.list("--collective", arguments->collectives, "Only these; default: all");
  command
      .list("--bytes", arguments->sizes,
            std::string("Message sizes (") + kByteUnits +
                "); where counts are per rank, of all ranks' parts together")
      .show_default("8,1KiB,16KiB,64KiB,512KiB,4MiB");
  command.number("--rounds", arguments->rounds, 1, 1000,
                 "Starts of each candidate's nodes; all candidates take turns");
  command.number("--repeat", run.repeat, 1, 100000,
                 "Repetitions in a start; messages above 10 ms: at most 2, every fifth round");
  cluster::LaunchOptions& launch = run.launch;
  add_provider_option(command, launch);
  command.number("--deadline", launch.deadline_ms, 10, 3'600'000,
                 "How long an awaited link may stay silent before it is declared dead, ms");
  command.text("--launch-prefix", launch.prefix,
               "Prefix for each process's command; %r is its node, %n is %r + 1");
  command.text("--address", launch.address, "IP each process binds; %r and %n as above");
  add_ranks_per_host(command, run.ranks_per_host);
  command.text("--node-binary", launch.node_binary, "espalier-node; default: beside espalier");
  add_format(command, arguments->format);
  command.set_footer(kTuneExamples);
  command.set_action([arguments] { run_tune(*arguments); });
}

}  // namespace espalier::tools

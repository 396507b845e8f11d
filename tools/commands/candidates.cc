#include "tools/commands/candidates.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "espalier/internal/collectives/schedule/enumerations.h"
#include "tools/cluster/start_cluster.h"
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
std::vector<std::uint64_t> sizes_of(const CandidateOptions& options, const Program& program) {
  if (program.collective == Collective::kBarrier) return {0};
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t bytes : options.bytes) {
    const std::uint64_t part = counts_per_rank(program.collective) ? bytes / program.ranks : bytes;
    sizes.push_back(std::max<std::uint64_t>(8, part / 8 * 8));  // whole elements
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

class CollectiveTuning {
 public:
  CollectiveTuning(const CandidateOptions& options, planner::Choice choice)
      : options_(options), choice_(std::move(choice)) {
    const planner::Candidate& any = *std::find_if(
        choice_.candidates().begin(), choice_.candidates().end(),
        [](const planner::Candidate& candidate) { return !candidate.programs.empty(); });
    for (const std::uint64_t bytes : sizes_of(options, any.programs.front())) {
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
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
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
    RunOptions options = options_.run;
    const planner::PlanRequest& plan = choice_.candidates()[candidate].plan;
    options.plan = {options_.topology, collective_name(plan.collective), plan.algorithm->name};
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

  const CandidateOptions& options_;
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

planner::ChoiceRequest request_for(const CandidateOptions& options, const predict::Model& model,
                                   const std::string& collective) {
  planner::ChoiceRequest request{.plan = plan_request({options.topology, collective})};
  request.op = operator_of(request.plan.collective, {});
  request.model = model;
  // Factors are of the prediction without them.
  request.model.tunings.clear();
  request.conditions = run_conditions(options.run, model, request.plan.topology->nodes());
  return request;
}

// All collectives, or those of --collective. Throws Failure (bad input).
std::vector<std::string> collectives_of(const CandidateOptions& options) {
  (void)parse_topology(options.topology);
  std::vector<std::string> all;
  for (const std::string& name : options.collectives) {
    (void)collective_of(name);
    if (std::find(all.begin(), all.end(), name) != all.end()) {
      bad_input("--collective names " + one_line(name) + " twice; expected each once");
    }
    all.push_back(name);
  }
  for (const Collective collective : kAllCollectives) {
    if (options.collectives.empty()) all.emplace_back(collective_name(collective));
  }
  return all;
}

// Null, and a line on stderr that says why: no algorithm can do the collective, which was not
// named. Throws Failure (bad input) if it was.
std::unique_ptr<CollectiveTuning> start_tuning(const CandidateOptions& options,
                                               const predict::Model& model,
                                               const std::string& collective) {
  try {
    return std::make_unique<CollectiveTuning>(
        options, or_bad_input(planner::Choice::make(request_for(options, model, collective))));
  } catch (const Failure& failure) {
    if (!options.collectives.empty()) throw;
    std::fprintf(stderr, "espalier: not tuned: %s\n", one_line(failure.line).c_str());
    return nullptr;
  }
}

}  // namespace

void measure_candidates(CandidateOptions options) {
  check_writable(options.output);
  find_node(options.run.launch);
  predict::Model model = model_of({options.run.model, ""});
  if (options.sizes.empty()) options.sizes = {"8", "1KiB", "16KiB", "64KiB", "512KiB", "4MiB"};
  for (const std::string& text : options.sizes) {
    options.bytes.push_back(byte_count("--bytes", text, kMaxTunedBytes));
  }
  const std::vector<std::string> collectives = collectives_of(options);
  (void)ranks_per_host(options.run.ranks_per_host, model);
  const bool is_text = options.format == Format::kText;
  if (is_text) {
    std::printf("%-14s %10s  %-32s %12s  %-32s %12s\n", "collective", "bytes", "auto took", "time",
                "fastest", "time");
  }
  Json rows = Json::array();
  for (const std::string& collective : collectives) {
    const auto one = start_tuning(options, model, collective);
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
  write_file(options.output, predict::model_text(model));
  if (!is_text) print_json(rows);
}

}  // namespace espalier::tools

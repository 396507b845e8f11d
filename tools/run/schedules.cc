// Which schedules `espalier run` runs, and with which sizes.

#include "tools/run/schedules.h"

#include <algorithm>

#include "planner/files/schedule_set.h"
#include "planner/workload/counts.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/schedules.h"
#include "tools/options/resolve.h"
#include "tools/options/workload_options.h"
#include "tools/report/selection_report.h"

namespace espalier::run_command {
namespace {

using tools::bad_input;

constexpr std::uint64_t kMaxRunBytes = std::uint64_t{1} << 40;

planner::ChoiceRequest request_of(const RunOptions& options, planner::PlanRequest plan,
                                  const tools::BoardLimits& limits) {
  planner::ChoiceRequest request{.plan = std::move(plan),
                                 .model = tools::model_of({options.model, ""}),
                                 .limits = limits.get()};
  request.conditions = run_conditions(options, request.model, request.plan.topology->nodes());
  return request;
}

planner::LoadedSchedule obtain_schedule(const RunOptions& options,
                                        const planner::PlanRequest& plan) {
  const tools::BoardLimits limits(options.board);
  planner::ChoiceRequest request = request_of(options, plan, limits);
  request.op = reference::default_operator(plan.collective);
  const bool fits = options.model.empty() && options.board.empty();
  const planner::PlannedSchedule schedule =
      tools::or_bad_input(fits ? planner::make_schedule(plan) : planner::fit_named(request));
  return tools::load_schedule("compiled", tools::compile(schedule), "");
}

// The sizes to run; `input` is filled if a file is broadcast.
std::vector<std::uint64_t> read_sizes(const RunOptions& options, bool barrier, std::string& input) {
  if (!options.input.empty()) {
    input = tools::read_given(options.input, FileKind::kInput);
    return {input.size()};
  }
  if (!options.counts.empty()) return {};  // set_counts() says
  std::vector<std::string> sizes = options.sizes;
  if (sizes.empty()) sizes = {barrier ? "0" : "1MiB"};
  std::vector<std::uint64_t> bytes;
  bytes.reserve(sizes.size());
  for (const std::string& size : sizes) {
    bytes.push_back(tools::byte_count("--bytes", size, kMaxRunBytes));
  }
  return bytes;
}

// Returns the bytes of the longest part of --counts.
std::uint64_t longest_part(const RunOptions& options, const planner::Choice& choice) {
  const auto any =
      std::find_if(choice.candidates().begin(), choice.candidates().end(),
                   [](const planner::Candidate& one) { return !one.programs.empty(); });
  reference::ReferenceInput what{.collective = any->programs.front().collective,
                                 .ranks = any->programs.front().ranks,
                                 .op = choice.request().op};
  tools::set_counts(options.counts, what);
  return what.bytes;
}

// Drops the candidates that cannot have unequal counts.
void keep_unequal(const planner::Choice& choice, planner::Ranking& ranking) {
  std::erase_if(ranking.estimates, [&choice](const planner::Estimate& estimate) {
    const Programs& programs = choice.candidates()[estimate.candidate].programs;
    return !std::all_of(programs.begin(), programs.end(), [](const Program& program) {
      SlotGroups groups;
      return takes_unequal_counts(program, groups);
    });
  });
  if (ranking.estimates.empty()) bad_input("no candidate takes unequal counts; expected --bytes");
}

// Chooses for each size. Successive sizes with the same schedule run on the same nodes.
std::vector<ScheduleRun> choose_schedules(const RunOptions& options, planner::PlanRequest plan,
                                          std::vector<std::uint64_t> bytes) {
  const tools::BoardLimits limits(options.board);
  planner::ChoiceRequest request = request_of(options, std::move(plan), limits);
  request.op = tools::operator_of(request.plan.collective, options.combining);
  const planner::Choice choice = tools::or_bad_input(planner::Choice::make(std::move(request)));
  if (!options.counts.empty()) bytes = {longest_part(options, choice)};
  std::vector<ScheduleRun> runs;
  std::size_t last = SIZE_MAX;  // the candidate of the last run
  for (const std::uint64_t size : bytes) {
    planner::Ranking ranking = tools::or_bad_input(choice.rank(size));
    if (!options.counts.empty()) keep_unequal(choice, ranking);
    const planner::Estimate& best = ranking.best();
    if (best.candidate != last) {
      last = best.candidate;
      runs.push_back({tools::load_schedule("compiled", tools::compile(choice.schedule(best)), ""),
                      {},
                      tools::describe_choice(choice, ranking),
                      choice.candidates()[best.candidate].name});
    }
    runs.back().bytes.push_back(size);
  }
  return runs;
}

// Chooses for each size as nodes do. Successive sizes with the same schedule run on the same nodes.
std::vector<ScheduleRun> runs_of_selection(const RunOptions& options,
                                           const planner::ScheduleSet& set, std::string& input) {
  const planner::LoadedSchedule first =
      tools::load_schedule(planner::first_member(set).name, planner::first_member(set).bytes, "");
  const Program& program = first.programs.front();
  reference::ReferenceInput what = tools::case_of(program, options.combining);
  std::vector<std::uint64_t> sizes =
      read_sizes(options, program.collective == Collective::kBarrier, input);
  if (!options.counts.empty()) {
    tools::set_counts(options.counts, what);
    sizes = {what.bytes};
  }
  std::vector<ScheduleRun> runs;
  std::size_t last = SIZE_MAX;  // the schedule of the last run
  for (const std::uint64_t size : sizes) {
    what.bytes = size;
    const planner::ChosenMember chosen = tools::or_bad_input(planner::choose_member(set, what));
    if (chosen.index == last) {
      runs.back().chosen += "; " + tools::reason_text(set, chosen, size);
    } else {
      const planner::ScheduleSet::Member& member = set.members[chosen.index];
      runs.push_back({tools::load_schedule(member.name, member.bytes, ""),
                      {},
                      tools::reason_text(set, chosen, size),
                      "",
                      set.bytes,
                      set.selected->digest});
      last = chosen.index;
    }
    runs.back().bytes.push_back(size);
  }
  return runs;
}

// Refuses what is for one start of the nodes. Throws Failure (bad input).
void check_single(const RunOptions& options, const std::vector<ScheduleRun>& runs) {
  if (runs.size() == 1) return;
  // Nodes that boot images have every schedule of a selection.
  const bool boots = runs.front().selection == 0;
  const char* single = !options.kill.empty()             ? "--kill"
                       : !options.stop.empty()           ? "--stop"
                       : boots && !options.image.empty() ? "--image"
                       : boots && !options.flash.empty() ? "--flash"
                                                         : nullptr;
  if (single == nullptr) return;
  const bool is_auto = options.plan.algorithm == tools::kAuto;
  bad_input(std::string(single) + " is for one schedule, and " +
            (!boots    ? "the selection"
             : is_auto ? "auto"
                       : "the choice of the run length") +
            " takes " + std::to_string(runs.size()) + " for these sizes; expected " +
            (!boots    ? "sizes of one"
             : is_auto ? "--algorithm NAME"
                       : "--run-length R"));
}

}  // namespace

std::vector<ScheduleRun> obtain_schedules(const RunOptions& options, std::string& input) {
  std::vector<ScheduleRun> runs;
  if (options.file.empty()) {
    const planner::PlanRequest plan = tools::plan_request(options.plan);
    if (planner::is_chosen(plan)) {
      const bool barrier = plan.collective == Collective::kBarrier;
      runs = choose_schedules(options, plan, read_sizes(options, barrier, input));
      check_single(options, runs);
      return runs;
    }
    runs.push_back({obtain_schedule(options, plan), {}, "", planner::candidate_name(plan)});
  } else {
    planner::ScheduleSet set = tools::read_schedules(options.file);
    if (set.selected) {
      runs = runs_of_selection(options, set, input);
      check_single(options, runs);
      return runs;
    }
    planner::ScheduleSet::Member& member = set.members.front();
    runs.push_back({tools::load_schedule(member.name, std::move(member.bytes), ""), {}, "", ""});
  }
  const Program& program = runs.front().schedule.programs.front();
  runs.front().bytes = read_sizes(options, program.collective == Collective::kBarrier, input);
  return runs;
}

reference::ReferenceInput describe_case(RunOptions& options,
                                        const planner::LoadedSchedule& schedule) {
  reference::ReferenceInput what = tools::case_of(schedule.programs.front(), options.combining);
  if (!options.counts.empty()) {
    tools::set_counts(options.counts, what);
    for (const Program& program : schedule.programs)
      tools::or_bad_input(planner::check_takes_counts(program, what));
    options.bytes = {what.bytes};
  }
  if (!options.input.empty() && what.collective != Collective::kBroadcast) {
    bad_input("--input is for broadcast; other collectives make their own vectors of --bytes");
  }
  if (!options.output.empty() && what.collective == Collective::kBarrier) {
    bad_input("--output writes results, and a barrier has none; expected no --output");
  }
  for (const std::uint64_t bytes : options.bytes) {
    what.bytes = bytes;
    tools::or_bad_input(reference::check_supported(what));
  }
  return what;
}

}  // namespace espalier::run_command

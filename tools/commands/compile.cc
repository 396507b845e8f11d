// espalier compile: topology, collective and algorithm to a schedule file.

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "collectives/schedule/selection_writer.h"
#include "planner/choose/chosen_schedules.h"
#include "planner/files/prove.h"
#include "planner/files/schedule_set.h"
#include "planner/make/embedding.h"
#include "planner/make/plan.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/common/schedules.h"
#include "tools/options/plan_options.h"
#include "tools/options/resolve.h"
#include "tools/report/selection_report.h"

namespace espalier::tools {
namespace {

struct CompileArguments {
  PlanOptions plan;
  std::string output;
  bool unverified = false;
  OperatorOptions combining;
  ModelOptions model;
  Format format = Format::kText;
};

// The minimum and maximum blocks of scratch over all nodes.
std::pair<std::uint32_t, std::uint32_t> scratch_of(const planner::PlannedSchedule& schedule) {
  std::uint32_t least = schedule.found.at(0).scratch_blocks, most = least;
  for (const Program& program : schedule.found) {
    least = std::min(least, program.scratch_blocks);
    most = std::max(most, program.scratch_blocks);
  }
  return {least, most};
}

Json to_json(const planner::PlannedSchedule& schedule) {
  const lower::Report& report = schedule.report;
  return {{"period", report.period},
          {"period_blocks", report.blocks},
          {"routed_period", report.routed_period},
          {"first_steps", report.first_steps},
          {"messages", report.messages},
          {"hops", report.hops},
          {"busiest", {report.from, report.to}},
          {"busiest_load", report.load},
          {"busiest_lanes", report.lanes},
          {"most_scratch_blocks", scratch_of(schedule).second}};
}

// What a file of one schedule and that of a selection both have.
Json to_json(const CompileArguments& arguments, const planner::PlannedSchedule& schedule) {
  Json json = {{"file", arguments.output},
               {"topology", schedule.topology->spec()},
               {"topology_digest", hex(schedule.topology->digest())},
               {"collective", collective_name(schedule.algorithm.collective)},
               {"ranks", schedule.parameters.ranks},
               {"nodes", schedule.nodes},
               {"verified", !arguments.unverified}};
  if (has_root(schedule.algorithm.collective)) json["root"] = schedule.parameters.root;
  return json;
}

std::string root_text(const planner::PlannedSchedule& schedule) {
  const bool rooted = has_root(schedule.algorithm.collective);
  return rooted ? ", root " + std::to_string(schedule.parameters.root) : "";
}

// The embedding, and the lowering.
void print_places(const CompileArguments& arguments, const planner::PlannedSchedule& schedule) {
  if (schedule.embedding) {
    std::printf("ranks are placed by embedding %s\n",
                planner::quoted_name(*schedule.embedding).c_str());
  }
  if (arguments.plan.links != "hop-by-hop") return;
  std::fputs(lower::describe(*schedule.topology, schedule.report).c_str(), stdout);
  const auto [least, most] = scratch_of(schedule);
  std::printf("scratch %u to %s a node, window %u\n", least, counted(most, "block").c_str(),
              schedule.found.front().window);
}

// One schedule, as it is chosen or named.
void compile_one(const CompileArguments& arguments, const Resolved& resolved) {
  const planner::PlannedSchedule& schedule = resolved.schedule;
  std::vector<std::uint8_t> bytes = compile(schedule);
  const bool hop_by_hop = arguments.plan.links == "hop-by-hop";
  const std::string proven =
      arguments.unverified ? "" : prove_compiled(arguments.output, bytes, hop_by_hop);
  write_file(arguments.output, bytes);
  const double a_node = static_cast<double>(bytes.size()) / schedule.nodes;
  if (arguments.format == Format::kJson) {
    Json json = to_json(arguments, schedule);
    json["algorithm"] = schedule.algorithm.name;
    json["embedding"] = schedule.embedding ? schedule.embedding->name : "none";
    json["bytes"] = bytes.size();
    if (!resolved.reason.empty()) json["chosen"] = resolved.reason;
    if (!arguments.unverified) json["proven_for"] = proven;
    if (schedule.report.changed) json["lowered"] = to_json(schedule);
    print_json(json);
    return;
  }
  std::printf("%s: %s by %s on %s%s: %s, %zu bytes (%.1f a node)\n",
              one_line(arguments.output).c_str(), collective_name(schedule.algorithm.collective),
              schedule.algorithm.name.c_str(), schedule.topology->title().c_str(),
              root_text(schedule).c_str(), counted(schedule.nodes, "program").c_str(), bytes.size(),
              a_node);
  if (!resolved.reason.empty()) {
    std::printf("%s: %s\n", choice_word(arguments.plan), resolved.reason.c_str());
  }
  std::printf("%s\n", arguments.unverified ? "not verified" : ("proven for " + proven).c_str());
  print_places(arguments, schedule);
}

// A selection: all its schedules, each proven.
void compile_several(const CompileArguments& arguments, const planner::ChosenSchedules& chosen) {
  const bool hop_by_hop = arguments.plan.links == "hop-by-hop";
  std::vector<std::vector<std::uint8_t>> files;
  std::vector<std::string> proven;
  for (const planner::PlannedSchedule& schedule : chosen.schedules) {
    files.push_back(compile(schedule));
    proven.push_back(arguments.unverified
                         ? "not verified"
                         : "proven for " +
                               prove_compiled(arguments.output, files.back(), hop_by_hop));
  }
  std::vector<std::uint8_t> bytes;
  if (const Status status = write_selection_file(chosen.table, files, bytes);
      status != Status::kOk) {
    bad_input("'" + one_line(arguments.output) + "' is not written: " + status_name(status));
  }
  // Reads it as nodes do, which checks every program with the table.
  const planner::ScheduleSet set = read_schedules(arguments.output, bytes);
  write_file(arguments.output, bytes);
  const planner::PlannedSchedule& first = chosen.schedules.front();
  if (arguments.format == Format::kJson) {
    Json json = to_json(arguments, first);
    json["bytes"] = bytes.size();
    json["within_percent"] = chosen.percent;
    json["selection"] = selection_json(set);
    json["schedules"] = Json::array();
    for (std::size_t i = 0; i < files.size(); ++i) {
      const planner::PlannedSchedule& one = chosen.schedules[i];
      json["schedules"].push_back({{"algorithm", one.algorithm.name},
                                   {"candidate", chosen.names[i]},
                                   {"embedding", one.embedding ? one.embedding->name : "none"},
                                   {"bytes", files[i].size()}});
      if (!arguments.unverified) json["schedules"].back()["proven_for"] = proven[i].substr(11);
      if (one.report.changed) json["schedules"].back()["lowered"] = to_json(one);
    }
    print_json(json);
    return;
  }
  std::printf("%s: %s by %s on %s%s: %s each, %zu bytes\n", one_line(arguments.output).c_str(),
              collective_name(first.algorithm.collective),
              counted(files.size(), "schedule").c_str(), first.topology->title().c_str(),
              root_text(first).c_str(), counted(first.nodes, "program").c_str(), bytes.size());
  std::printf("%s: within %llu %% of the best prediction%s at each size that was tried\n",
              choice_word(arguments.plan), static_cast<unsigned long long>(chosen.percent),
              chosen.found_by.empty() ? "" : (" from " + one_line(chosen.found_by)).c_str());
  std::fputs(rows_text(set).c_str(), stdout);
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::printf("schedule %zu: %s: %s\n", i, chosen.names[i].c_str(), proven[i].c_str());
    print_places(arguments, chosen.schedules[i]);
  }
}

void run_compile(const CompileArguments& arguments) {
  check_writable(arguments.output);
  const planner::PlanRequest plan = plan_request(arguments.plan);
  const bool is_for_all = planner::is_chosen(plan) && arguments.model.bytes.empty() &&
                          plan.collective != Collective::kBarrier;
  if (!is_for_all) {
    compile_one(arguments, resolve(plan, arguments.combining, arguments.model));
    return;
  }
  planner::ChosenSchedules chosen =
      resolve_for_all_sizes(plan, arguments.combining, arguments.model);
  if (chosen.schedules.size() > 1) {
    compile_several(arguments, chosen);
    return;
  }
  const std::string model = chosen.found_by.empty() ? "" : " from " + one_line(chosen.found_by);
  compile_one(arguments, {std::move(chosen.schedules.front()),
                          chosen.names.front() + ", chosen for all sizes: within " +
                              std::to_string(chosen.percent) + " % of the best prediction" + model +
                              " at each size that was tried"});
}

}  // namespace

void add_compile(Command app) {
  Command command =
      app.add_command("compile", "Compiles a schedule: one descriptor per node, in one file");
  auto& arguments = command.bind<CompileArguments>(run_compile);
  add_plan_options(command, arguments.plan, true);
  add_schedule_window(command, arguments.plan);
  add_links(command, arguments.plan);
  add_limits(command, arguments.plan.limits);
  add_model_options(command, arguments.model);
  add_choice_bytes(command, arguments.model, arguments.combining, "all from 1 byte to 1 GiB");
  command.text("-o,--output", arguments.output, "The schedule file to write").required();
  command.flag("--no-verify", arguments.unverified,
               "Write it without a proof: for schedules that are too large to verify");
  add_format(command, arguments.format);
  command.set_footer(
      "One file serves every message size: --algorithm auto writes a selection of several\n"
      "schedules, and the sizes from which each is used, unless one serves all sizes or --bytes\n"
      "names one. So does a fractional tree without --run-length, of several run lengths. All are\n"
      "verified before the file is written.\n"
      "Examples:\n"
      "  espalier compile --topology complete:16 --collective broadcast -o b.esp\n"
      "  espalier compile --topology mesh:4x4 --collective reduce --algorithm chain --root 15 -o "
      "r.esp\n"
      "  espalier compile --topology fattree:k=4,h=2,c=1 --collective allgather --algorithm leaf "
      "-o a.esp\n"
      "  espalier compile --topology mesh:4x4 --collective broadcast --algorithm two-tree --links "
      "hop-by-hop -o m.esp");
}

}  // namespace espalier::tools

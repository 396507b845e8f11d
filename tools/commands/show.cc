// espalier show: programs as tables, and expanded into steps.

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "planner/files/schedule_set.h"
#include "tools/commands/commands.h"
#include "tools/common/json.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/common/schedules.h"
#include "tools/options/plan_options.h"
#include "tools/options/workload_options.h"
#include "tools/report/bound.h"
#include "tools/report/selection_report.h"
#include "tools/report/show_json.h"
#include "tools/report/show_text.h"

namespace espalier::tools {
namespace {

struct ShowArguments {
  std::string file, rank, blocks, topology, schedule;
  Format format = Format::kText;
};

constexpr std::uint64_t kMaxShownBlocks = 1'000'000;

std::string rules_text(const Program& program) {
  std::string text;
  for (std::uint32_t i = 0; i < program.blocks_count; ++i) {
    const BlockRule& rule = program.blocks[i];
    text += i == 0 ? "" : ", ";
    text += "from " + counted(rule.from_bytes, "byte") + " ";
    text += rule.block_bytes == 0 ? "one block" : "blocks of " + std::to_string(rule.block_bytes);
  }
  return text;
}

void print_header(const planner::LoadedSchedule& loaded) {
  const Program& program = loaded.programs.front();
  std::printf("%s: %s by %s on %s\n", one_line(loaded.name).c_str(),
              collective_name(program.collective), program.algorithm,
              loaded.topology->title().c_str());
  const std::string root =
      has_root(program.collective) ? ", root " + std::to_string(program.root) : "";
  std::printf("  ranks %u%s, window %u, scratch %s%s, %s, contention guarantee %s%s\n",
              program.ranks, root.c_str(), program.window,
              counted(program.scratch_blocks, "block").c_str(),
              has_rotated_scratch(program) ? ", rotated" : "", port_model_name(program.port_model),
              contention_name(program.contention),
              program.needs_commutative ? ", the operator must commute" : "");
  std::printf("  steps %s, at least %s; %s of N blocks\n",
              count_text(program.counts[program.steps_ref]).c_str(),
              bound_text(bounds_of(loaded), program).c_str(),
              counted(program.segments, "segment").c_str());
  std::printf("  N: %s", rules_text(program).c_str());
  if (program.residue_mod != 0) {
    std::printf("; N = %u mod %u", program.residue, program.residue_mod);
  }
  std::printf("\n  by %s, schedule %s, topology %s, %zu bytes\n", program.producer,
              hex(program.schedule_digest).c_str(), hex(program.topology_digest).c_str(),
              loaded.bytes.size());
}

std::string peers_text(const Program& program) {
  std::string text;
  for (std::uint32_t i = 0; i < links_count(program); ++i) {
    text += (i == 0 ? "" : " ") + std::to_string(peer_of(program, i));
  }
  return text.empty() ? "none" : text;
}

// A table of one program: every action once.
void print_program(const planner::LoadedSchedule& loaded, std::uint32_t node) {
  const Program& program = loaded.programs[node];
  std::printf("\n%s: %zu bytes, peers %s\n", loaded.topology->node_name(node).c_str(),
              descriptor_bytes(loaded, node), peers_text(program).c_str());
  std::uint32_t action = 0;
  for (std::uint32_t phase_at = 0; phase_at < program.phases_count; ++phase_at) {
    const Phase& phase = program.phases[phase_at];
    std::printf("  phase %u: %s\n", phase_at,
                counted(count_text(program.counts[phase.steps_ref]), "step").c_str());
    if (phase.actions > 0) {
      std::printf("    %-3s %-14s %-12s %-5s %-8s %s\n", "#", "step", "i below", "after", "kind",
                  "what");
    }
    for (std::uint32_t end = action + phase.actions; action < end; ++action) {
      const Action& row = program.actions[action];
      const std::string first = count_text(program.counts[row.t0_ref]);
      const std::string instance =
          row.pace_ref == 0 ? "i" : "(" + index_text(program, row.pace_ref) + ")";
      const std::string step =
          first + "+" + (phase.period == 1 ? "" : std::to_string(phase.period)) + instance;
      std::printf("    %-3u %-14s %-12s %-5u %-8s %s%s\n", action, step.c_str(),
                  count_text(program.counts[row.instances_ref]).c_str(), row.after,
                  kind_name(row.kind), action_text(program, row).c_str(),
                  row.clamp ? " (beyond N: block N-1)" : "");
    }
  }
}

void print_steps_of(const Program& program, std::int64_t blocks) {
  std::printf("  expanded for N = %lld: %s\n", static_cast<long long>(blocks),
              counted(phase_steps(program, blocks), "step").c_str());
  for (const Instance& instance : expand(program, blocks)) {
    std::printf("    step %-5lld %-8s %s\n", static_cast<long long>(instance.step),
                kind_name(instance.kind), instance_text(instance).c_str());
  }
}

// Prints all transfers of the whole schedule, one line per step.
void print_all_steps(const planner::LoadedSchedule& loaded, std::int64_t blocks) {
  std::map<std::int64_t, std::string> steps;
  for (const Program& program : loaded.programs) {
    for (const Instance& instance : expand(program, blocks)) {
      if (instance.kind != ActionKind::kSend) continue;
      steps[instance.step] +=
          "  " + std::to_string(program.node) + ">" + std::to_string(instance.peer) + ":" +
          std::to_string(instance.a.segment) + "." + std::to_string(instance.a.block);
    }
  }
  const Program& program = loaded.programs.front();
  std::printf("\nN = %lld: %s; from>to:segment.block\n", static_cast<long long>(blocks),
              counted(phase_steps(program, blocks), "step").c_str());
  for (const auto& [step, transfers] : steps) {
    std::printf("  step %-5lld%s\n", static_cast<long long>(step), transfers.c_str());
  }
}

// The table of a selection, and the header of each schedule; as JSON, all of each.
void show_selection(const ShowArguments& arguments, const planner::ScheduleSet& set) {
  for (const auto& [option, value] :
       {std::pair{"--rank", arguments.rank}, std::pair{"--blocks", arguments.blocks}}) {
    if (!value.empty()) (void)need_member(set, "", option);
  }
  // All are loaded before anything is printed.
  std::vector<planner::LoadedSchedule> schedules;
  for (const planner::ScheduleSet::Member& member : set.members) {
    schedules.push_back(load_schedule(member.name, member.bytes, arguments.topology));
  }
  Json json = {
      {"file", set.name}, {"selection", selection_json(set)}, {"schedules", Json::array()}};
  if (arguments.format == Format::kText) {
    std::printf("%s: %s\n%s", one_line(set.name).c_str(), selection_text(set).c_str(),
                rows_text(set).c_str());
  }
  for (const planner::LoadedSchedule& loaded : schedules) {
    if (arguments.format == Format::kJson) {
      json["schedules"].push_back(schedule_json(loaded, -1, 0));
    } else {
      print_header(loaded);
    }
  }
  if (arguments.format == Format::kJson) print_json(json);
}

void run_show(const ShowArguments& arguments) {
  const planner::ScheduleSet set = read_schedules(arguments.file);
  const std::optional<std::size_t> chosen = given_member(set, arguments.schedule);
  if (!chosen) {
    show_selection(arguments, set);
    return;
  }
  const planner::ScheduleSet::Member& member = set.members[*chosen];
  const planner::LoadedSchedule loaded =
      load_schedule(member.name, member.bytes, arguments.topology);
  std::int64_t blocks = 0;  // not expanded
  if (!arguments.blocks.empty()) {
    blocks = chosen_blocks(arguments.blocks, kMaxShownBlocks, loaded.programs.front());
  }
  if (blocks > 0) or_bad_input(planner::check_form(loaded, blocks));
  std::int64_t rank = -1;  // all
  if (!arguments.rank.empty()) {
    const std::uint64_t last = loaded.programs.size() - 1;
    rank = static_cast<std::int64_t>(whole_number("--rank", arguments.rank, 0, last));
  }
  if (arguments.format == Format::kJson) {
    print_json(schedule_json(loaded, rank, blocks));
    return;
  }
  print_header(loaded);
  if (rank >= 0) {
    print_program(loaded, static_cast<std::uint32_t>(rank));
    if (blocks > 0) print_steps_of(loaded.programs[rank], blocks);
  } else if (blocks > 0) {
    print_all_steps(loaded, blocks);
  } else {
    for (std::uint32_t node = 0; node < loaded.programs.size(); ++node) print_program(loaded, node);
  }
}

}  // namespace

void add_show(Command app) {
  Command command = app.add_command("show", "Prints a schedule file as text");
  auto& arguments = command.bind<ShowArguments>(run_show);
  command.text("file", arguments.file, "The schedule file").required();
  command.text("--rank", arguments.rank, "Only this rank's program");
  command.text("--blocks", arguments.blocks,
               "Also expand it into steps, for this N (blocks per segment); one that the "
               "schedule has");
  add_schedule_option(command, arguments.schedule);
  command.text("--topology", arguments.topology, "Refuse the file if it is for another");
  add_format(command, arguments.format);
  command.set_footer(
      "output[s, b] is block b of segment s. Instance i of an action runs in the step given.\n"
      "With --format json everything is numbers, by the schema docs/schedule.schema.json.\n"
      "Examples:\n"
      "  espalier show b.esp --rank 5\n"
      "  espalier show b.esp --rank 5 --blocks 4\n"
      "  espalier show b.esp --blocks 4\n"
      "  espalier show selection.esp --schedule 1 --rank 5");
}

}  // namespace espalier::tools

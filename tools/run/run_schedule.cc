// Runs one schedule of `espalier run` on node processes.

#include <algorithm>
#include <csignal>

#include "espalier/collectives/verify/verify.h"
#include "planner/files/prove.h"
#include "tools/cluster/start_cluster.h"
#include "tools/common/failure.h"
#include "tools/common/host.h"
#include "tools/common/result_files.h"
#include "tools/common/schedules.h"
#include "tools/options/plan_options.h"
#include "tools/report/verify_report.h"
#include "tools/run/schedules.h"

namespace espalier::run_command {
namespace {

using tools::bad_input;

void parse_disturbances(RunOptions& options) {
  for (const bool kill : {true, false}) {
    for (const std::string& text : kill ? options.kill : options.stop) {
      if (tools::parse_disturbance(text, kill ? SIGKILL : SIGSTOP, options.launch)) continue;
      bad_input("bad " + std::string(kill ? "--kill " : "--stop ") + tools::one_line(text) +
                ": expected NODE@MS with a node from 0 to " +
                std::to_string(options.launch.nodes - 1));
    }
  }
}

// Refuses --nodes-per-process if no two nodes may share a process. Throws Failure (bad input).
void check_processes(const cluster::LaunchOptions& launch) {
  const bool all_started = std::all_of(launch.commands.begin(), launch.commands.end(),
                                       [](const std::string& command) { return !command.empty(); });
  if (launch.nodes_per_process == 1 || !all_started) return;
  bad_input(
      "--nodes-per-process has no effect: --start gives each node a process of its own; expected "
      "no --nodes-per-process");
}

// Proves the schedule for every N at once. One that is not periodic is proven for each N up to the
// largest that the sizes give.
verify::Verdict prove(const planner::LoadedSchedule& schedule,
                      const reference::ReferenceInput& what, std::uint64_t max_bytes,
                      bool hop_by_hop) {
  verify::VerifyOptions options;
  // In a hop-by-hop run the endpoints are the topology's links. Otherwise the fabric routes, and
  // other links carry the blocks.
  options.links = hop_by_hop || schedule.file.nodes() > schedule.file.ranks();
  options.method = verify::Method::kPeriodic;
  verify::Verdict verdict = tools::verdict_of(schedule, options);
  if (!verdict.valid && verdict.counterexample.property == verify::Property::kForm) {
    reference::ReferenceInput longest = what;
    longest.bytes = max_bytes;
    options.method = verify::Method::kExhaustive;
    options.max_blocks =
        tools::or_bad_input(planner::layout_of(schedule.programs.front(), longest)).blocks;
    verdict = tools::verdict_of(schedule, options);
  }
  if (verdict.valid) return verdict;
  bad_input("the schedule does not verify and is not run: " + verdict.counterexample.message);
}

// Writes the results of all ranks for the last size.
void write_last_results(const RunOptions& options, reference::ReferenceInput what,
                        const cluster::NodeProcesses& cluster) {
  what.bytes = options.bytes.back();
  tools::write_results(options.output, what, [&cluster](std::uint32_t rank) {
    const cluster::SharedMemory& memory = cluster.members()[rank].memory;
    return tools::RankMemory{memory.input(), memory.output()};
  });
}

RunResult describe_run(const RunOptions& options, const planner::LoadedSchedule& schedule,
                       const reference::ReferenceInput& what) {
  const Program& program = schedule.programs.front();
  RunResult result;
  result.topology = schedule.topology->spec();
  result.topology_title = schedule.topology->title();
  result.collective = collective_name(program.collective);
  result.kind = program.collective;
  if (options.all_here()) result.processors = tools::usable_processors();
  result.default_model = options.model.empty();
  result.algorithm = program.algorithm;
  result.provider = options.launch.provider;
  result.combines = reference::combines(what.collective);
  result.op = result.combines ? options.combining.op_or_default() : op_name(what.op.op);
  result.type = result.combines && what.op.op == Op::kCustom ? "maps" : type_name(what.op.type);
  result.ranks = what.ranks;
  result.nodes = schedule.file.nodes();
  result.root = what.root;
  result.rooted = has_root(what.collective);
  result.bytes_per_rank = counts_per_rank(what.collective);
  result.counts = what.counts;
  result.counts_option = options.counts;
  result.nodes_per_process = options.launch.nodes_per_process;
  result.back_to_back = options.back_to_back;
  for (std::uint32_t node = 0; node < schedule.file.nodes(); ++node) {
    const std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    if (schedule.file.descriptor(node, bytes, size) != Status::kOk) continue;
    result.descriptor_bytes = std::max<std::uint64_t>(result.descriptor_bytes, size);
  }
  return result;
}

}  // namespace

RunResult run_schedule(RunOptions options, const ScheduleRun& run, const std::string& input) {
  const planner::LoadedSchedule& schedule = run.schedule;
  const Program& program = schedule.programs.front();
  options.bytes = run.bytes;
  options.candidate = run.candidate;
  options.selection_digest = run.selection;
  const reference::ReferenceInput what = describe_case(options, schedule);
  const std::uint64_t most = *std::max_element(options.bytes.begin(), options.bytes.end());
  const bool hop_by_hop = runs_hop_by_hop(options, schedule);
  std::vector<tools::LinkTable> tables;
  if (hop_by_hop) tables = link_tables(schedule);
  if (!options.cables.empty()) {
    options.launch.hosts = add_cables(options, *schedule.topology, tables);
    for (const tools::LinkTable& table : tables) {
      std::vector<std::string>& ends = options.launch.cables.emplace_back();
      for (const tools::NodeLink& link : table) {
        ends.insert(ends.end(), link.cables.begin(), link.cables.end());
      }
    }
  }
  for (const tools::LinkTable& table : tables)
    options.launch.links.push_back(tools::to_text(table));
  check_memory(options, schedule, tables, what, most);
  options.launch.nodes = schedule.file.nodes();
  options.launch.ranks = program.ranks;
  for (std::uint32_t node = 0; node < options.launch.nodes; ++node) {
    options.launch.names.push_back(schedule.topology->node_name(node));
  }
  options.launch.log = keeps_logs(options);
  options.launch.topology = schedule.topology->spec();
  options.launch.commands = start_commands(options.starts, options.launch.nodes);
  check_processes(options.launch);
  options.launch.boots = boot_nodes(options);
  check_boot_files(options.launch);
  tools::check_addresses(options.launch);
  parse_disturbances(options);
  for (const std::string& directory : {options.output, options.events}) {
    if (!directory.empty()) tools::make_directory(directory);
  }
  RunResult result = describe_run(options, schedule, what);
  result.chosen = run.chosen;
  result.chosen_by = run.selection != 0 ? "selection" : tools::choice_word(options.plan);
  const verify::Verdict verdict = prove(schedule, what, most, hop_by_hop);
  result.proven_blocks = verdict.proven_blocks;
  result.proven_for = planner::proven_for(program, verdict);
  result.bounds = verdict.lower_bounds;
  result.hop_by_hop = hop_by_hop;

  cluster::NodeProcesses cluster;
  std::vector<std::vector<std::uint8_t>> files;
  if (options.launch.boot.empty()) {
    files.push_back(run.selection != 0 ? run.selection_file : schedule.bytes);
  }
  tools::start_cluster(options.launch, files, cluster);
  if (hop_by_hop) result.endpoints = list_endpoints(schedule, tables, cluster);
  execute(options, schedule, what, options.input.empty() ? nullptr : &input, cluster, result);
  if (keeps_logs(options)) write_logs(options, schedule, what, cluster);
  if (result.right && !options.output.empty()) write_last_results(options, what, cluster);
  return result;
}

}  // namespace espalier::run_command

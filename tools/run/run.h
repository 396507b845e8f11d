#pragma once
// The parts of `espalier run`: its options, and running them on node processes. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/predict/predict.h"
#include "planner/files/loaded_schedule.h"
#include "planner/workload/reference.h"
#include "planner/workload/workload.h"
#include "tools/cluster/launcher.h"
#include "tools/cluster/link_tables.h"
#include "tools/common/output.h"
#include "tools/options/plan_options.h"
#include "tools/options/workload_options.h"
#include "tools/report/run_report.h"

namespace espalier::run_command {

struct RunOptions {
  std::string file;  // a schedule file; empty: compile `plan`
  tools::PlanOptions plan{"complete:16", "broadcast"};
  std::vector<std::string> sizes;      // as typed
  std::vector<std::uint64_t> bytes;    // of each message, or of one rank's part of it
  std::string candidate;               // that was chosen or named; empty: not known
  std::uint64_t selection_digest = 0;  // of the selection by which nodes choose; 0: none
  std::string counts;                  // --counts as typed; empty: `bytes`
  std::string input;                   // file to broadcast
  std::string output;                  // directory for the results
  std::string events;                  // directory for what each node did in the last collective
  std::string trace;                   // file for a trace of the last collective; empty: none
  tools::OperatorOptions combining;
  std::uint32_t repeat = 1;
  std::uint32_t warmup = 0;
  std::uint32_t back_to_back = 1;
  std::string model;           // its file
  std::string ranks_per_host;  // as typed
  std::string board;           // limits that the schedule keeps
  std::string cables;          // a topology file with the cables of the links; empty: none
  bool ranks = false;          // print a row per rank
  std::vector<std::string> kill, stop;
  // The image or flash that nodes boot instead of the schedule's file, as typed ([NODES=]FILE), and
  // the signer that they trust.
  std::string image, flash, public_key;
  bool takes_unsigned = false;
  std::vector<std::string> starts;  // as typed
  // Whether all nodes are on this host: no prefix or command may start them on another.
  [[nodiscard]] bool all_here() const { return launch.prefix.empty() && starts.empty(); }
  tools::Format format = tools::Format::kText;
  cluster::LaunchOptions launch;
};

// What the prediction of a run on `nodes` nodes assumes: without --ranks-per-host, all share this
// host's processors unless a prefix or commands start them, perhaps on others. Throws Failure (bad
// input).
[[nodiscard]] predict::Conditions run_conditions(const RunOptions& options,
                                                 const predict::Model& model, std::uint32_t nodes);

// Whether nodes have the topology's links and no others. Without --links: if all messages of the
// schedule go to neighbours, except on a complete graph. Throws Failure (bad input) if it was asked
// for and some do not.
[[nodiscard]] bool runs_hop_by_hop(const RunOptions& options,
                                   const planner::LoadedSchedule& schedule);

// The links of the schedule's nodes. Throws Failure (bad input) if a node has too many.
[[nodiscard]] std::vector<tools::LinkTable> link_tables(const planner::LoadedSchedule& schedule);

// Gives each lane of the links the interface of its cable, as the file of --cables says. A link has
// as many lanes as cables, at least. Throws Failure (bad input): a wrong file, other nodes, a link
// without a cable. Returns each node's host, as the file names it.
std::vector<std::string> add_cables(const RunOptions& options, const topology::Topology& topology,
                                    std::vector<tools::LinkTable>& tables);

// Returns the command that starts each of `nodes` nodes (LaunchOptions.commands), from --start:
// NODES=COMMAND, the nodes as 4,5 or 4-7. Throws Failure (bad input).
[[nodiscard]] std::vector<std::string> start_commands(const std::vector<std::string>& starts,
                                                      std::uint32_t nodes);

// The value of --image or --flash: [NODES=]FILE. Without NODES every node boots it.
struct BootFile {
  std::string nodes, file;
};
[[nodiscard]] BootFile boot_file(const std::string& value);
// Returns by node whether it boots --image or --flash (LaunchOptions.boots); empty: all do, or the
// options are not given. launch.commands must be set. Throws Failure (bad input).
[[nodiscard]] std::vector<bool> boot_nodes(const RunOptions& options);
// Throws Failure (bad input) if a node of this host boots a file that cannot be read. Nodes behind
// a prefix or a --start command may be on other hosts, so their files are not checked.
void check_boot_files(const cluster::LaunchOptions& launch);

// Lists the endpoints that the nodes of a hop-by-hop run have opened, by node, link and lane.
[[nodiscard]] std::vector<EndpointResult> list_endpoints(
    const planner::LoadedSchedule& schedule, const std::vector<tools::LinkTable>& tables,
    const cluster::NodeProcesses& cluster);

// Throws Failure (bad input) if messages of `most` bytes do not fit this machine's memory. Counts
// all nodes' buffers and scratch, routers' too, their links, and the results to compare with.
// `tables`: the links of a hop-by-hop run; empty for a routed one.
void check_memory(const RunOptions& options, const planner::LoadedSchedule& schedule,
                  const std::vector<tools::LinkTable>& tables,
                  const reference::ReferenceInput& what, std::uint64_t most);

// Runs every size, all repetitions, on `cluster`; fills result.sizes and result.right, which report
// a failed or wrong collective. `input`: the message of every repetition; null: made up, another
// one each time. Throws Failure if it was interrupted (by a signal) or memory ran out.
void execute(const RunOptions& options, const planner::LoadedSchedule& schedule,
             reference::ReferenceInput what, const std::string* input,
             cluster::NodeProcesses& cluster, RunResult& result);

// Whether nodes keep event logs.
[[nodiscard]] inline bool keeps_logs(const RunOptions& options) {
  return !options.trace.empty() || !options.events.empty();
}

// Records that each node's log of the last size has room for; 0 where none is wanted. Throws
// Failure (bad input) for a message whose log is too long.
[[nodiscard]] std::vector<std::uint32_t> log_rooms(const RunOptions& options,
                                                   const planner::LoadedSchedule& schedule,
                                                   const reference::ReferenceInput& what);

// Writes the events of the last collective into options.trace and options.events.
void write_logs(const RunOptions& options, const planner::LoadedSchedule& schedule,
                const reference::ReferenceInput& what, const cluster::NodeProcesses& cluster);

}  // namespace espalier::run_command

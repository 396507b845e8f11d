// espalier run: compiles, verifies, starts one process per node, runs, checks every result.

#include "tools/commands/run.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "espalier/collectives/verify/verify.h"
#include "tools/choose/resolve.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/image/image.h"
#include "tools/launch/start_cluster.h"
#include "tools/report/verify_report.h"
#include "tools/select/schedule_set.h"
#include "tools/workload/counts.h"
#include "tools/workload/result_files.h"

namespace espalier::tools {
namespace {

using run_command::run_model;
using run_command::RunOptions;
using run_command::RunResult;

constexpr std::uint64_t kMaxRunBytes = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxPerProcess = 256;

// "NODE@MS"
bool parse_disturbance(const std::string& text, int signal, launch::LaunchOptions& launch) {
  launch::Disturbance disturbance;
  disturbance.signal = signal;
  const char* end = text.data() + text.size();
  const auto rank = std::from_chars(text.data(), end, disturbance.node);
  if (rank.ec != std::errc() || rank.ptr == end || *rank.ptr != '@') return false;
  const auto after = std::from_chars(rank.ptr + 1, end, disturbance.after_ms);
  if (after.ec != std::errc() || after.ptr != end || disturbance.node >= launch.nodes) return false;
  launch.disturbances.push_back(disturbance);
  return true;
}

// Refuses what happens to a node after its process was killed, and a second --stop. Throws Failure
// (bad input).
void check_effects(std::vector<launch::Disturbance> disturbances) {
  const auto name = [](const launch::Disturbance& one) {
    return (one.signal == SIGKILL ? "--kill " : "--stop ") + std::to_string(one.node) + "@" +
           std::to_string(one.after_ms);
  };
  std::map<std::uint32_t, launch::Disturbance> last;  // by node
  std::stable_sort(disturbances.begin(), disturbances.end(),
                   [](const auto& a, const auto& b) { return a.after_ms < b.after_ms; });
  for (const launch::Disturbance& one : disturbances) {
    const auto [before, is_first] = last.emplace(one.node, one);
    if (!is_first && (before->second.signal == SIGKILL || one.signal == SIGSTOP)) {
      bad_input(name(one) + " has no effect after " + name(before->second));
    }
    before->second = one;
  }
}

void parse_disturbances(RunOptions& options) {
  for (const bool kill : {true, false}) {
    for (const std::string& text : kill ? options.kill : options.stop) {
      if (parse_disturbance(text, kill ? SIGKILL : SIGSTOP, options.launch)) continue;
      bad_input("bad " + std::string(kill ? "--kill " : "--stop ") + one_line(text) +
                ": expected NODE@MS with a node from 0 to " +
                std::to_string(options.launch.nodes - 1));
    }
  }
  check_effects(options.launch.disturbances);
}

LoadedSchedule obtain_schedule(const RunOptions& options) {
  ChoiceRequest request;
  request.selection = options.selection;
  request.model = run_model(options);
  request.conditions =
      run_conditions(options, request.model, check_selection(options.selection)->nodes());
  const BoardLimits limits(options.board);
  request.limits = limits.get();
  const bool fits = options.model.empty() && options.board.empty();
  return load_schedule(
      "compiled", compile(fits ? select_algorithm(options.selection) : fit_named(request)), "");
}

// Proves the schedule for every N at once. One that is not periodic is proven for each N up to the
// largest that the sizes give.
verify::Verdict prove(const LoadedSchedule& schedule, const reference::ReferenceInput& what,
                      std::uint64_t max_bytes, bool hop_by_hop) {
  Progress progress("verifying");
  verify::VerifyOptions options;
  // In a hop-by-hop run the endpoints are the topology's links. Otherwise the fabric routes, and
  // other links carry the blocks.
  options.links = hop_by_hop || schedule.file.nodes() > schedule.file.ranks();
  options.progress = [&progress](double done) { progress.show(done); };
  options.method = verify::Method::kPeriodic;
  const auto program = [&](std::uint32_t node) -> const Program& {
    return schedule.programs.at(node);
  };
  verify::Verdict verdict = verify::verify(*schedule.topology, program, options);
  if (!verdict.valid && verdict.counterexample.property == verify::Property::kForm) {
    reference::ReferenceInput longest = what;
    longest.bytes = max_bytes;
    options.method = verify::Method::kExhaustive;
    options.max_blocks = layout_of(schedule.programs.front(), longest).blocks;
    verdict = verify::verify(*schedule.topology, program, options);
  }
  if (verdict.valid) return verdict;
  bad_input("the schedule does not verify and is not run: " + verdict.counterexample.message);
}

// The case that the schedule and the options describe together. With --counts also sets
// options.bytes. Throws Failure (bad input).
reference::ReferenceInput describe_case(RunOptions& options, const LoadedSchedule& schedule) {
  reference::ReferenceInput what = case_of(schedule.programs.front(), options.combining);
  if (!options.counts.empty()) {
    set_counts(options.counts, what);
    for (const Program& program : schedule.programs) check_takes_counts(program, what);
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
    or_bad_input(reference::check_supported(what));
  }
  return what;
}

// Sets the boot options of nodes that boot images and so get no schedule. Throws Failure (bad
// input).
void add_boot_words(RunOptions& options) {
  const bool flash = !options.flash.empty();
  if (options.image.empty() && !flash) {
    if (options.public_key.empty() && !options.takes_unsigned) return;
    bad_input(std::string(options.takes_unsigned ? "--unsigned" : "--public-key") +
              " is for nodes that boot images; expected --image or --flash as well");
  }
  if (options.public_key.empty() != options.takes_unsigned) {
    bad_input(
        "nodes that boot images need a key: expected one of --public-key FILE and --unsigned");
  }
  options.launch.boot = {flash ? "--flash" : "--image",
                         run_command::boot_file(flash ? options.flash : options.image).file};
  if (options.takes_unsigned) {
    options.launch.boot.emplace_back("--unsigned");
  } else {
    (void)image::trusted_key(options.public_key);
    options.launch.boot.insert(options.launch.boot.end(), {"--public-key", options.public_key});
  }
}

// Refuses --nodes-per-process if no two nodes may share a process. Throws Failure (bad input).
void check_processes(const launch::LaunchOptions& launch) {
  const bool all_started = std::all_of(launch.commands.begin(), launch.commands.end(),
                                       [](const std::string& command) { return !command.empty(); });
  if (launch.nodes_per_process == 1 || !all_started) return;
  bad_input(
      "--nodes-per-process has no effect: --start gives each node a process of its own; expected "
      "no --nodes-per-process");
}

// Writes the results of all ranks for the last size.
void write_last_results(const RunOptions& options, reference::ReferenceInput what,
                        const launch::NodeProcesses& cluster) {
  what.bytes = options.bytes.back();
  write_results(options.output, what, [&cluster](std::uint32_t rank) {
    const launch::SharedMemory& memory = cluster.members()[rank].memory;
    return RankMemory{memory.input(), memory.output()};
  });
}

RunResult describe_run(const RunOptions& options, const LoadedSchedule& schedule,
                       const reference::ReferenceInput& what) {
  const Program& program = schedule.programs.front();
  RunResult result;
  result.topology = schedule.topology->spec();
  result.topology_title = schedule.topology->title();
  result.collective = collective_name(program.collective);
  result.kind = program.collective;
  result.default_alpha = !options.alpha_given && options.model.empty();
  result.default_beta = !options.beta_given && options.model.empty();
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

// A schedule, and the sizes that it runs.
struct ScheduleRun {
  LoadedSchedule schedule;
  std::vector<std::uint64_t> bytes;
  std::string chosen;  // why; empty: it was named
  // Of a selection: its file, which nodes load instead of the schedule's, and its digest.
  std::vector<std::uint8_t> selection_file = {};
  std::uint64_t selection = 0;
};

// The sizes to run; `input` is filled if a file is broadcast.
std::vector<std::uint64_t> read_sizes(const RunOptions& options, bool barrier, std::string& input) {
  if (!options.input.empty()) {
    input = read_file(options.input);
    return {input.size()};
  }
  if (!options.counts.empty()) return {};  // set_counts() says
  std::vector<std::string> sizes = options.sizes;
  if (sizes.empty()) sizes = {barrier ? "0" : "1MiB"};
  std::vector<std::uint64_t> bytes;
  bytes.reserve(sizes.size());
  for (const std::string& size : sizes) {
    bytes.push_back(byte_count("--bytes", size, kMaxRunBytes));
  }
  return bytes;
}

// Returns the bytes of the longest part of --counts.
std::uint64_t longest_part(const RunOptions& options, const Choice& choice) {
  const auto any = std::find_if(choice.candidates().begin(), choice.candidates().end(),
                                [](const Candidate& one) { return !one.programs.empty(); });
  reference::ReferenceInput what;
  what.collective = any->programs.front().collective;
  what.ranks = any->programs.front().ranks;
  what.op = operator_of(choice.request());
  set_counts(options.counts, what);
  return what.bytes;
}

// Drops the candidates that cannot have unequal counts.
void keep_unequal(const Choice& choice, Ranking& ranking) {
  std::erase_if(ranking.estimates, [&choice](const Estimate& estimate) {
    const Programs& programs = choice.candidates()[estimate.candidate].programs;
    return !std::all_of(programs.begin(), programs.end(), [](const Program& program) {
      SlotGroups groups;
      return takes_unequal_counts(program, groups);
    });
  });
  if (ranking.estimates.empty()) bad_input("no candidate takes unequal counts; expected --bytes");
}

// Chooses for each size. Successive sizes with the same schedule run on the same nodes.
std::vector<ScheduleRun> choose_schedules(const RunOptions& options,
                                          std::vector<std::uint64_t> bytes) {
  const BoardLimits limits(options.board);
  ChoiceRequest request;
  request.selection = options.selection;
  request.combining = options.combining;
  request.model = run_model(options);
  request.limits = limits.get();
  request.conditions =
      run_conditions(options, request.model, check_selection(options.selection)->nodes());
  const Choice choice(std::move(request));
  if (!options.counts.empty()) bytes = {longest_part(options, choice)};
  std::vector<ScheduleRun> runs;
  std::size_t last = SIZE_MAX;  // the candidate of the last run
  for (const std::uint64_t size : bytes) {
    Ranking ranking = choice.rank(size);
    if (!options.counts.empty()) keep_unequal(choice, ranking);
    const Estimate& best = ranking.best();
    if (best.candidate != last) {
      last = best.candidate;
      runs.push_back({load_schedule("compiled", compile(choice.selected(best)), ""),
                      {},
                      describe_choice(choice, ranking)});
    }
    runs.back().bytes.push_back(size);
  }
  return runs;
}

// Chooses for each size as nodes do. Successive sizes with the same schedule run on the same nodes.
std::vector<ScheduleRun> runs_of_selection(const RunOptions& options, const ScheduleSet& set,
                                           std::string& input) {
  const LoadedSchedule first = load_schedule(first_member(set).name, first_member(set).bytes, "");
  const Program& program = first.programs.front();
  reference::ReferenceInput what = case_of(program, options.combining);
  std::vector<std::uint64_t> sizes =
      read_sizes(options, program.collective == Collective::kBarrier, input);
  if (!options.counts.empty()) {
    set_counts(options.counts, what);
    sizes = {what.bytes};
  }
  std::vector<ScheduleRun> runs;
  std::size_t last = SIZE_MAX;  // the schedule of the last run
  for (const std::uint64_t size : sizes) {
    what.bytes = size;
    const ChosenMember chosen = choose_member(set, what);
    if (chosen.index == last) {
      runs.back().chosen += "; " + chosen.reason;
    } else {
      const ScheduleSet::Member& member = set.members[chosen.index];
      runs.push_back({load_schedule(member.name, member.bytes, ""),
                      {},
                      chosen.reason,
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
  bad_input(std::string(single) + " is for one schedule, and " +
            (boots ? "auto" : "the selection") + " takes " + std::to_string(runs.size()) +
            " for these sizes; expected " + (boots ? "--algorithm NAME" : "sizes of one"));
}

std::vector<ScheduleRun> obtain_schedules(const RunOptions& options, std::string& input) {
  std::vector<ScheduleRun> runs;
  if (options.file.empty() && options.selection.algorithm == kAuto) {
    (void)check_selection(options.selection);
    const bool barrier = options.selection.collective == collective_name(Collective::kBarrier);
    runs = choose_schedules(options, read_sizes(options, barrier, input));
    check_single(options, runs);
    return runs;
  }
  if (options.file.empty()) {
    runs.push_back({obtain_schedule(options), {}, ""});
  } else {
    ScheduleSet set = read_schedules(options.file);
    if (set.selected) {
      runs = runs_of_selection(options, set, input);
      check_single(options, runs);
      return runs;
    }
    ScheduleSet::Member& member = set.members.front();
    runs.push_back({load_schedule(member.name, std::move(member.bytes), ""), {}, ""});
  }
  const Program& program = runs.front().schedule.programs.front();
  runs.front().bytes = read_sizes(options, program.collective == Collective::kBarrier, input);
  return runs;
}

// Starts the nodes of one schedule, and runs its sizes.
RunResult run_schedule(RunOptions options, const ScheduleRun& run, const std::string& input) {
  const LoadedSchedule& schedule = run.schedule;
  const Program& program = schedule.programs.front();
  options.bytes = run.bytes;
  options.selection_digest = run.selection;
  const reference::ReferenceInput what = describe_case(options, schedule);
  const std::uint64_t most = *std::max_element(options.bytes.begin(), options.bytes.end());
  const bool hop_by_hop = run_command::runs_hop_by_hop(options, schedule);
  std::vector<LinkTable> tables;
  if (hop_by_hop) tables = run_command::link_tables(schedule);
  for (const LinkTable& table : tables) options.launch.links.push_back(to_text(table));
  run_command::check_memory(options, schedule, tables, what, most);
  options.launch.nodes = schedule.file.nodes();
  for (std::uint32_t node = 0; node < options.launch.nodes; ++node) {
    options.launch.names.push_back(schedule.topology->node_name(node));
  }
  options.launch.log = run_command::keeps_logs(options);
  options.launch.topology = schedule.topology->spec();
  options.launch.commands = run_command::start_commands(options.starts, options.launch.nodes);
  check_processes(options.launch);
  options.launch.boots = run_command::boot_nodes(options);
  run_command::check_boot_files(options.launch);
  check_addresses(options.launch);
  parse_disturbances(options);
  for (const std::string& directory : {options.output, options.events}) {
    if (!directory.empty()) make_directory(directory);
  }
  RunResult result = describe_run(options, schedule, what);
  result.chosen = run.chosen;
  result.by_selection = run.selection != 0;
  const verify::Verdict verdict = prove(schedule, what, most, hop_by_hop);
  result.proven_blocks = verdict.proven_blocks;
  result.proven_for = proven_for(program, verdict);
  result.bounds = verdict.lower_bounds;
  result.hop_by_hop = hop_by_hop;

  launch::NodeProcesses cluster;
  std::vector<std::vector<std::uint8_t>> files;
  if (options.launch.boot.empty()) {
    files.push_back(run.selection != 0 ? run.selection_file : schedule.bytes);
  }
  start_cluster(options.launch, files, cluster);
  if (hop_by_hop) result.endpoints = run_command::list_endpoints(schedule, cluster);
  run_command::execute(options, schedule, what, options.input.empty() ? nullptr : &input, cluster,
                       result);
  if (run_command::keeps_logs(options)) run_command::write_logs(options, schedule, what, cluster);
  if (result.right && !options.output.empty()) write_last_results(options, what, cluster);
  return result;
}

// Refuses what no size of any schedule may have, before the first one runs.
void check_runs(const RunOptions& options, const std::vector<ScheduleRun>& runs) {
  for (const ScheduleRun& run : runs) {
    RunOptions sizes = options;
    sizes.bytes = run.bytes;
    (void)describe_case(sizes, run.schedule);
  }
}

}  // namespace

void run_collective(RunOptions options) {
  if (options.ranks && options.format == Format::kJson) {
    bad_input("--ranks is for text, and JSON has every rank's row; expected one of them");
  }
  if (!options.trace.empty()) check_writable(options.trace);
  find_node(options.launch);
  add_boot_words(options);
  if (!options.board.empty() && !options.file.empty()) {
    bad_input("--board is for a schedule that is compiled here; expected no --board with a file");
  }
  std::string input;
  const std::vector<ScheduleRun> runs = obtain_schedules(options, input);
  check_runs(options, runs);
  (void)ranks_per_host(options.ranks_per_host, run_model(options));
  std::vector<RunResult> results;
  for (const ScheduleRun& run : runs) {
    RunOptions one = options;
    if (&run != &runs.back()) one.output = one.events = one.trace = "";  // of the last collective
    results.push_back(run_schedule(std::move(one), run, input));
    if (!results.back().right) break;
  }
  std::cout << (options.format == Format::kJson ? to_json(results)
                                                : to_text(results, options.ranks))
            << std::flush;
  if (!results.back().right) negative("a node failed or a result is wrong");
}

namespace {

constexpr const char* kRunExamples =
    "Starts one espalier-node process per node (routers that run programs are nodes, too), runs,\n"
    "and checks every rank's bytes against a plain reference; for a barrier, that no rank leaves\n"
    "before all have entered. A schedule that fails verification is not run. --bytes is one\n"
    "rank's part in scatter, gather, allgather, reduce-scatter and all-to-all, otherwise the\n"
    "whole message.\n"
    "Examples:\n"
    "  espalier run --topology complete:16 --collective broadcast --algorithm two-tree \\\n"
    "      --input firmware.bin --output received\n"
    "  espalier run --topology complete:8 --collective allreduce \\\n"
    "      --bytes 1MiB --type f32 --op sum --provider shm\n"
    "  espalier run --topology fattree:k=4,h=2,c=1 --collective allgather --algorithm leaf \\\n"
    "      --bytes 64KiB --provider shm\n"
    "  espalier run --topology complete:4 --collective gather --algorithm binomial \\\n"
    "      --counts 100,0,25,3000\n"
    "  espalier run --topology complete:64 --collective scan --algorithm chain --op affine \\\n"
    "      --nodes-per-process 16\n"
    "  espalier run broadcast.esp --bytes 8,64KiB,8MiB --repeat 20 --warmup 3 --format json\n"
    "  espalier run broadcast.esp --image images/node-%r.img --public-key release.key.pub\n"
    "  espalier run --topology complete:8 --start '6,7=qemu-aarch64-static -L / \\\n"
    "      build-aarch64/firmware/node/espalier-node'\n"
    "  espalier run --bytes 4KiB --back-to-back 1000000 --deadline 2000 --kill 5@1500\n"
    "Exit status: 0 every check held; 1 a wrong result or a failed node; 2 bad input.";

void add_message_options(Command command, RunOptions& options) {
  Option bytes = command.list(
      "--bytes", options.sizes,
      std::string("Message sizes, e.g. 8,64KiB; each is run; default: 1MiB (barrier: 0); ") +
          kByteUnits);
  add_counts_option(command, options.counts);
  command.text("--input", options.input, "Broadcast this file")
      .excludes(bytes)
      .excludes(command.option("--counts"));
  command.text("--trace", options.trace,
               "Write the events of the last collective into this file (see 'espalier trace')");
  command.text("--output", options.output, "Write each rank's result to DIR/rank-N.bin");
  command.text("--events", options.events,
               "Write each node's events of the last collective to DIR/node-N.events");
  add_operator_options(command, options.combining);
  command.number("--repeat", options.repeat, 1, 1'000'000,
                 "Timed repetitions; all ranks start each together");
  command.number("--warmup", options.warmup, 0, 1'000'000, "Untimed repetitions before");
  command.number("--back-to-back", options.back_to_back, 1, 1'000'000'000,
                 "Collectives per repetition, one after the other without a barrier");
  Option alpha = command.real("--alpha", options.alpha, 0, 1e6,
                              "Start-up time of a block, s, for the prediction");
  Option beta =
      command.real("--beta", options.beta, 0, 1, "Time per byte, s/B, for the prediction");
  command
      .text("--model", options.model,
            "A model that 'espalier measure -o' wrote, instead of alpha and beta: for the "
            "prediction, the choice and the block table")
      .excludes(alpha)
      .excludes(beta);
  add_ranks_per_host(command, options.ranks_per_host);
}

void add_launch_options(Command command, RunOptions& options) {
  launch::LaunchOptions& launch = options.launch;
  command.text("--provider", launch.provider, "tcp or shm").show_default(launch.provider);
  command.number("--deadline", launch.deadline_ms, 10, 3'600'000,
                 "How long an awaited link may stay silent before it is declared dead, ms; nodes "
                 "end within twice this time");
  command.number("--window", launch.window, 1, kMaxWindow, "Maximum number of steps in flight");
  command.number("--nodes-per-process", launch.nodes_per_process, 1, kMaxPerProcess,
                 "Nodes that share a process and its one thread");
  command.flag("--check-blocks", launch.check_blocks,
               "Send a CRC-32 with every block, and check it");
  command.text("--launch-prefix", launch.prefix,
               "Prefix for each process's command; %r is its first node, %n is %r + 1");
  command.text("--address", launch.address, "IP that each process binds; %r and %n as above");
  command.text("--node-binary", launch.node_binary, "espalier-node; default: beside espalier");
  command.texts(
      "--start", options.starts,
      "NODES=COMMAND: the command that starts these nodes (4,5 or 4-7) instead of espalier-node, "
      "one process each; words for sh, %r and %n as above; may be repeated for other nodes");
  Option image =
      command.text("--image", options.image,
                   "[NODES=]FILE: image that each node boots, or only these nodes (4,5 or 4-7), "
                   "while --start says what the others boot; %r is the node's number");
  command
      .text("--flash", options.flash,
            "[NODES=]FILE: flash file whose slots each node boots; NODES and %r as above")
      .excludes(image);
  Option key = command.text("--public-key", options.public_key,
                            "Nodes boot only images signed with this key's private part");
  command.flag("--unsigned", options.takes_unsigned, "Nodes boot any image").excludes(key);
  command.texts("--kill", options.kill,
                "Test aid: NODE@MS kills a node's process MS after the start");
  command.texts("--stop", options.stop,
                "Test aid: NODE@MS stops a node's process (SIGSTOP) MS after the start");
}

}  // namespace

void add_run(Command app) {
  Command command = app.add_command(
      "run", "Runs a collective on real processes over libfabric and checks every result");
  const auto options = std::make_shared<RunOptions>();
  Option file =
      command.text("file", options->file, "A schedule file; without one, a schedule is compiled");
  add_selection(command, options->selection, false);
  add_links(command, options->selection);
  command.option("--links").describe(
      "routed: a node reaches every peer of its program; hop-by-hop: it has an endpoint for each "
      "lane to a neighbour and no others (a selection is lowered for that, a file must "
      "run hop by hop); default: hop-by-hop if all messages go to neighbours, except on a complete "
      "graph");
  for (const char* name : {"--topology", "--collective", "--algorithm", "--root", "--run-length",
                           "--radix", "--lambda", "--ports", "--embedding"}) {
    command.option(name).excludes(file);
  }
  command.option("--topology").show_default(options->selection.topology);
  command.option("--collective").show_default(options->selection.collective);
  command.option("--algorithm").show_default(options->selection.algorithm);
  add_message_options(command, *options);
  command.text("--board", options->board,
               "A board's description or its folder: the schedule must keep the limits of its "
               "firmware");
  add_launch_options(command, *options);
  command.flag(
      "--ranks", options->ranks,
      "Also print a row per rank (process, time, SHA-256), and per endpoint of a hop-by-hop "
      "run");
  add_format(command, options->format);
  command.set_footer(kRunExamples);
  command.set_action([options, command] {
    // Without --window the schedule allows its default, and nodes issue as much as it allows.
    if (command.option("--window").is_given()) {
      options->selection.window = std::to_string(options->launch.window);
      options->selection.window_is_limit = true;
    }
    options->alpha_given = command.option("--alpha").is_given();
    options->beta_given = command.option("--beta").is_given();
    run_collective(*options);
  });
}

}  // namespace espalier::tools

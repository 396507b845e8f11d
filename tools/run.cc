// espalier run: compiles, verifies, starts one node process a node, runs, checks every result.

#include "tools/run.h"

#include <CLI/Error.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>

#include "espalier/collectives/verify/verify.h"
#include "tools/commands.h"
#include "tools/cost_model.h"
#include "tools/failure.h"
#include "tools/numbers.h"
#include "tools/run_files.h"
#include "tools/start_cluster.h"

namespace espalier::tools {
namespace {

using run::Options;
using run::RunResult;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
constexpr std::uint32_t kMostPerProcess = 256;

// "NODE@MS"
bool parse_disturbance(const std::string& text, int signal, launch::Options& launch) {
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

void parse_disturbances(Options& options) {
  for (const bool kill : {true, false}) {
    for (const std::string& text : kill ? options.kill : options.stop) {
      if (parse_disturbance(text, kill ? SIGKILL : SIGSTOP, options.launch)) continue;
      bad_input("bad " + std::string(kill ? "--kill " : "--stop ") + one_line(text) +
                ": expected NODE@MS with a node from 0 to " +
                std::to_string(options.launch.nodes - 1));
    }
  }
}

LoadedSchedule obtain_schedule(const Options& options) {
  if (!options.file.empty()) return load_schedule(options.file, "");
  return load_schedule("compiled", compile(choose(options.selection)), "");
}

// Proves the schedule for every N at once, or where it is none of the kind that can be, for each N
// up to the largest that the sizes give.
std::int64_t verified_blocks(const LoadedSchedule& schedule, const reference::Case& what,
                             std::uint64_t most, bool modelled) {
  Progress progress("verifying");
  verify::VerifyOptions options;
  // Of a modelled run the endpoints are the topology's links; else the fabric routes, and it is not
  // those links that carry the blocks here.
  options.links = modelled || schedule.file.nodes() > schedule.file.ranks();
  options.progress = [&progress](double done) { progress.at(done); };
  options.method = verify::Method::kPeriodic;
  const auto program = [&](std::uint32_t node) -> const Program& {
    return schedule.programs.at(node);
  };
  verify::Verdict verdict = verify::verify(*schedule.topology, program, options);
  if (!verdict.valid && verdict.counterexample.point == verify::Point::kForm) {
    reference::Case longest = what;
    longest.bytes = most;
    options.method = verify::Method::kExhaustive;
    options.max_blocks = layout_of(schedule.programs.front(), longest).blocks;
    verdict = verify::verify(*schedule.topology, program, options);
  }
  if (verdict.valid) return verdict.proven_blocks;
  bad_input("the schedule does not verify and is not run: " + verdict.counterexample.message);
}

// What the schedule and the options say together.
reference::Case describe_case(const Options& options, const Program& program) {
  reference::Case what = case_of(program, options.combining);
  std::string error;
  if (!options.input.empty() && what.collective != espalier_Collective_BROADCAST) {
    bad_input("--input is for broadcast; other collectives make their own vectors of --bytes");
  }
  for (const std::uint64_t bytes : options.bytes) {
    what.bytes = bytes;
    if (!reference::supported(what, error)) bad_input(error);
  }
  return what;
}

// Nodes that boot from images of their own get no schedule.
void add_boot_words(Options& options) {
  const bool flash = !options.flash.empty();
  if (options.image.empty() && !flash) {
    if (options.public_key.empty() && !options.takes_unsigned) return;
    bad_input(std::string(options.takes_unsigned ? "--unsigned" : "--public-key") +
              " is for nodes that boot images; expected --image or --flash as well");
  }
  if (options.public_key.empty() != options.takes_unsigned) {
    bad_input("whose images do nodes take? expected one of --public-key FILE and --unsigned");
  }
  options.launch.boot = {flash ? "--flash" : "--image", flash ? options.flash : options.image};
  if (options.takes_unsigned) {
    options.launch.boot.emplace_back("--unsigned");
  } else {
    options.launch.boot.insert(options.launch.boot.end(), {"--public-key", options.public_key});
  }
}

// What all nodes have of the last size.
void write_last_results(const Options& options, reference::Case what,
                        const launch::Cluster& cluster) {
  what.bytes = options.bytes.back();
  write_results(options.output, what, [&cluster](std::uint32_t rank) {
    const launch::SharedMemory& memory = cluster.members()[rank].memory;
    return RankMemory{memory.input(), memory.output()};
  });
}

RunResult describe_run(const Options& options, const LoadedSchedule& schedule,
                       const reference::Case& what) {
  const Program& program = schedule.programs.front();
  RunResult result;
  result.topology = schedule.topology->spec();
  result.topology_title = schedule.topology->title();
  result.collective = collective_name(program.collective);
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

void run_run(Options options) {
  find_node(options.launch);
  add_boot_words(options);
  const LoadedSchedule schedule = obtain_schedule(options);
  const Program& program = schedule.programs.front();
  std::string input;
  if (!options.input.empty()) {
    input = read_file(options.input);
    options.bytes = {input.size()};
  } else {
    const bool barrier = program.collective == espalier_Collective_BARRIER;
    if (options.sizes.empty()) options.sizes = {barrier ? "0" : "1MiB"};
    for (const std::string& size : options.sizes) {
      options.bytes.push_back(byte_count("--bytes", size, kMostBytes));
    }
  }
  const reference::Case what = describe_case(options, program);
  if (!options.model.empty()) (void)CostModel::read(options.model);
  const std::uint64_t most = *std::max_element(options.bytes.begin(), options.bytes.end());
  const bool modelled = run::modelled(options, schedule);
  std::vector<LinkTable> tables;
  if (modelled) tables = run::link_tables(schedule);
  for (const LinkTable& table : tables) options.launch.links.push_back(to_text(table));
  run::check_memory(options, schedule, tables, what, most);
  options.launch.nodes = schedule.file.nodes();
  for (std::uint32_t node = 0; node < options.launch.nodes; ++node) {
    options.launch.names.push_back(schedule.topology->node_name(node));
  }
  options.launch.log = run::keeps_logs(options);
  options.launch.topology = schedule.topology->spec();
  options.launch.commands = run::start_commands(options.starts, options.launch.nodes);
  parse_disturbances(options);
  for (const std::string& directory : {options.output, options.events}) {
    if (!directory.empty()) make_directory(directory);
  }
  RunResult result = describe_run(options, schedule, what);
  result.proven_blocks = verified_blocks(schedule, what, most, modelled);
  result.modelled = modelled;

  launch::Cluster cluster;
  std::vector<std::vector<std::uint8_t>> files;
  if (options.launch.boot.empty()) files.push_back(schedule.bytes);
  start_cluster(options.launch, files, cluster);
  if (modelled) result.endpoints = run::list_endpoints(schedule, cluster);
  run::execute(options, schedule, what, options.input.empty() ? nullptr : &input, cluster, result);
  if (run::keeps_logs(options)) run::write_logs(options, schedule, what, cluster);
  if (result.right && !options.output.empty()) write_last_results(options, what, cluster);
  std::cout << (options.format == Format::kJson ? to_json(result) : to_text(result)) << std::flush;
  if (!result.right) negative("a node failed or a result is wrong");
}

namespace {

constexpr const char* kExamples =
    "Starts one espalier-node process a node (where routers run programs, they are nodes, too), "
    "runs,\n"
    "and checks every rank's bytes against a plain reference; of a barrier, that nobody ends "
    "before all have come. Nothing that does not verify\n"
    "is run. --bytes is one rank's part in scatter, gather, allgather, reduce-scatter and\n"
    "all-to-all, else the whole message.\n"
    "Examples:\n"
    "  espalier run --topology complete:16 --collective broadcast --algorithm two-tree \\\n"
    "      --input firmware.bin --output received\n"
    "  espalier run --topology complete:8 --collective allreduce --algorithm two-tree \\\n"
    "      --bytes 1MiB --type f32 --op sum --provider shm\n"
    "  espalier run --topology fattree:k=4,h=2,c=1 --collective allgather --algorithm leaf \\\n"
    "      --bytes 64KiB --provider shm\n"
    "  espalier run --topology complete:64 --collective scan --algorithm chain --op affine \\\n"
    "      --nodes-per-process 16\n"
    "  espalier run broadcast.esp --bytes 8,64KiB,8MiB --repeat 20 --warmup 3 --format json\n"
    "  espalier run broadcast.esp --image images/node-%r.img --public-key release.key.pub\n"
    "  espalier run --topology complete:8 --start '6,7=qemu-aarch64-static -L / \\\n"
    "      build-aarch64/firmware/node/espalier-node'\n"
    "  espalier run --bytes 4KiB --back-to-back 1000000 --deadline 2000 --kill 5@1500\n"
    "Exit status: 0 every check held; 1 a wrong result or a failed node; 2 bad input.";

void add_message_options(CLI::App& command, Options& options) {
  auto* bytes =
      command
          .add_option("--bytes", options.sizes,
                      "Message sizes, e.g. 8,64KiB; each is run; default: 1MiB (barrier: 0)")
          ->delimiter(',')
          ->allow_extra_args(false);  // a file may follow
  command.add_option("--input", options.input, "Broadcast this file")->excludes(bytes);
  command.add_option("--trace", options.trace,
                     "Write what happened in the last collective into this file (see 'espalier "
                     "trace')");
  command.add_option("--output", options.output, "Write each rank's result to DIR/rank-N.bin");
  command.add_option("--events", options.events,
                     "Write what each node did in the last collective to DIR/node-N.events");
  add_operator_options(command, options.combining);
  command.add_option("--repeat", options.repeat, "Timed repetitions, all ranks starting together")
      ->check(CLI::Range(1u, 1000000u))
      ->capture_default_str();
  command.add_option("--warmup", options.warmup, "Untimed repetitions before")
      ->check(CLI::Range(0u, 1000000u))
      ->capture_default_str();
  command
      .add_option("--back-to-back", options.back_to_back,
                  "Collectives a repetition, one after the other without a barrier")
      ->check(CLI::Range(1u, 1000000000u))
      ->capture_default_str();
  auto* alpha =
      command.add_option("--alpha", options.alpha, "Predicted start-up time of a block, s")
          ->check(CLI::NonNegativeNumber)
          ->capture_default_str();
  auto* beta = command.add_option("--beta", options.beta, "Predicted time per byte, s/B")
                   ->check(CLI::NonNegativeNumber)
                   ->capture_default_str();
  command
      .add_option("--model", options.model,
                  "alpha and beta as 'espalier measure --format json' measured them")
      ->excludes(alpha)
      ->excludes(beta);
}

void add_launch_options(CLI::App& command, Options& options) {
  launch::Options& launch = options.launch;
  command.add_option("--provider", launch.provider, "tcp or shm")->capture_default_str();
  command
      .add_option("--deadline", launch.deadline_ms,
                  "Silence in ms after which a link is dead; nodes end within twice of it")
      ->check(CLI::Range(10u, 3600000u))
      ->capture_default_str();
  command.add_option("--window", launch.window, "Steps in flight, at most")
      ->check(CLI::Range(1u, kMaxWindow))
      ->capture_default_str();
  command
      .add_option("--nodes-per-process", launch.nodes_per_process,
                  "Nodes that share a process and its one thread")
      ->check(CLI::Range(1u, kMostPerProcess))
      ->capture_default_str();
  command.add_flag("--check-blocks", launch.check_blocks, "A CRC-32 with every block, checked");
  command.add_option("--launch-prefix", launch.prefix,
                     "Words before each process's command; %r is its first node, %n that plus one");
  command.add_option("--address", launch.address, "IP each process binds; %r and %n as above");
  command.add_option("--node-binary", launch.node_binary,
                     "espalier-node; default: beside espalier");
  command
      .add_option(
          "--start", options.starts,
          "NODES=COMMAND: what starts these nodes (4,5 or 4-7) instead of espalier-node, one "
          "process each; words for sh, %r and %n as above; again for others")
      ->allow_extra_args(false);
  auto* image = command.add_option("--image", options.image,
                                   "Nodes boot from this image each, %r its number");
  command.add_option("--flash", options.flash, "... from the slots of this flash, %r as above")
      ->excludes(image);
  auto* key = command.add_option("--public-key", options.public_key,
                                 "... and take only images that this key's owner signed");
  command.add_flag("--unsigned", options.takes_unsigned, "... and take any image")->excludes(key);
  command
      .add_option("--kill", options.kill,
                  "Test aid: NODE@MS kills a node's process MS after the start")
      ->allow_extra_args(false);
  command.add_option("--stop", options.stop, "Test aid: NODE@MS stops it (SIGSTOP)")
      ->allow_extra_args(false);
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "run", "Runs a collective on real processes over libfabric and checks every result");
  const auto options = std::make_shared<Options>();
  auto* file = command->add_option("file", options->file, "A schedule file; else one is compiled");
  add_selection(*command, options->selection, false);
  add_links(*command, options->selection);
  command->get_option("--links")->description(
      "direct: a node reaches every peer of its program; modelled: it has an endpoint for each "
      "lane "
      "to a neighbour and no others (a selection is lowered for that, a file must be modelled); "
      "default: modelled where all messages go to neighbours, but on a complete graph");
  for (const char* name : {"--topology", "--collective", "--algorithm", "--root", "--run",
                           "--lambda", "--ports", "--embedding"}) {
    command->get_option(name)->excludes(file)->capture_default_str();
  }
  add_message_options(*command, *options);
  add_launch_options(*command, *options);
  add_format(*command, options->format);
  command->footer(kExamples);
  command->callback([options, command] {
    // Else the schedule allows what it does by default, and nodes as much as it allows.
    if (command->count("--window") > 0) {
      options->selection.window = std::to_string(options->launch.window);
      options->selection.window_is_limit = true;
    }
    run_run(*options);
  });
}

}  // namespace espalier::tools

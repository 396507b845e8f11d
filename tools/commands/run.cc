// espalier run: compiles, verifies, starts one process per node, runs, checks every result.

#include "tools/run/run.h"

#include <iostream>
#include <memory>

#include "base/process/variables.h"
#include "hal/fabric/provider_list.h"
#include "tools/cluster/start_cluster.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/image/image.h"
#include "tools/options/resolve.h"
#include "tools/run/schedules.h"

namespace espalier::tools {
namespace {

using run_command::RunOptions;
using run_command::RunResult;
using run_command::ScheduleRun;

constexpr std::uint32_t kMaxPerProcess = 256;

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

// Throws Failure (bad input) if what --cables needs is not there.
void check_cables(RunOptions& options) {
  if (options.cables.empty()) return;
  if (!ofi::binds_address(options.launch.provider)) {
    bad_input("--cables names interfaces, and " + options.launch.provider +
              " binds no IP; expected --provider tcp");
  }
  if (options.plan.links == "routed") {
    bad_input("--links routed: nothing forwards between cables; expected --links hop-by-hop");
  }
  options.plan.links = "hop-by-hop";
}

// Refuses what no size of any schedule may have, before the first one runs.
void check_runs(const RunOptions& options, const std::vector<ScheduleRun>& runs) {
  for (const ScheduleRun& run : runs) {
    RunOptions sizes = options;
    sizes.bytes = run.bytes;
    (void)run_command::describe_case(sizes, run.schedule);
  }
}

void run_collective(RunOptions options) {
  if (options.ranks && options.format == Format::kJson) {
    bad_input("--ranks is for text, and JSON has every rank's row; expected one of them");
  }
  if (!options.trace.empty()) check_writable(options.trace);
  find_node(options.launch);
  check_cables(options);
  add_boot_words(options);
  if (!options.board.empty() && !options.file.empty()) {
    bad_input("--board is for a schedule that is compiled here; expected no --board with a file");
  }
  std::string input;
  const std::vector<ScheduleRun> runs = run_command::obtain_schedules(options, input);
  check_runs(options, runs);
  (void)ranks_per_host(options.ranks_per_host, model_of({options.model, ""}));
  std::vector<RunResult> results;
  for (const ScheduleRun& run : runs) {
    RunOptions one = options;
    if (&run != &runs.back()) one.output = one.events = one.trace = "";  // of the last collective
    results.push_back(run_command::run_schedule(std::move(one), run, input));
    if (!results.back().right) break;
  }
  std::cout << (options.format == Format::kJson ? to_json(results)
                                                : to_text(results, options.ranks))
            << std::flush;
  if (!results.back().right) negative("a node failed or a result is wrong");
}

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
    "      --bytes 1MiB --type f32 --op sum --provider mem\n"
    "  espalier run --topology fattree:k=4,h=2,c=1 --collective allgather --algorithm leaf \\\n"
    "      --bytes 64KiB --provider mem\n"
    "  espalier run --topology complete:4 --collective gather --algorithm binomial \\\n"
    "      --counts 100,0,25,3000\n"
    "  espalier run --topology complete:64 --collective scan --algorithm chain --op affine \\\n"
    "      --nodes-per-process 16\n"
    "  espalier run broadcast.esp --bytes 8,64KiB,8MiB --repeat 20 --warmup 3 --format json\n"
    "  espalier run broadcast.esp --bytes 64KiB --warmup 1 --trace trace.json\n"
    "  espalier run broadcast.esp --image images/node-%r.img --public-key release.key.pub\n"
    "  espalier run --topology complete:8 --start '6,7=qemu-aarch64 -L / \\\n"
    "      build-aarch64/firmware/node/espalier-node'\n"
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
               "Write the events of the last collective into this file (Trace Event Format)");
  command.text("--output", options.output, "Write each rank's result to DIR/rank-N.bin");
  command.text("--events", options.events,
               "Write each node's events of the last collective to DIR/node-N.events");
  add_operator_options(command, options.combining);
  command.number("--repeat", options.repeat, 1, 1'000'000,
                 "Timed repetitions; all ranks start each together");
  command.number("--warmup", options.warmup, 0, 1'000'000, "Untimed repetitions before");
  command.number("--back-to-back", options.back_to_back, 1, 1'000'000'000,
                 "Collectives per repetition, one after the other without a barrier");
  command.text("--model", options.model,
               "A model that 'espalier measure -o' wrote, for the prediction, the choice and the "
               "block table; default: default constants of the links' classes");
  add_ranks_per_host(command, options.ranks_per_host);
}

void add_launch_options(Command command, RunOptions& options) {
  cluster::LaunchOptions& launch = options.launch;
  add_node_options(command, launch);
  add_place_options(command, launch);
  command
      .text("--cables", options.cables,
            "A topology file with cables: each lane of a link leaves by the interface of its "
            "cable, from its link-local IPv6 address; hop by hop; default of --topology: this file")
      .excludes(command.option("--address"));
  command.number("--window", launch.window, 1, kMaxWindow, "Maximum number of steps in flight");
  command.number("--nodes-per-process", launch.nodes_per_process, 1, kMaxPerProcess,
                 "Nodes that share a process and its one thread");
  command.flag("--check-blocks", launch.check_blocks,
               "Send a CRC-32 with every block, and check it");
  command.flag("--authenticate-data", launch.authenticate_data,
               "Authenticate the payload of long messages, too, with the job secret");
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
  if (!is_set(Variable::kTestFaults)) return;
  // NODE@MS kills, or stops by SIGSTOP, a node's process MS after the start.
  command.texts("--kill", options.kill, "").hide();
  command.texts("--stop", options.stop, "").hide();
}

}  // namespace

void add_run(Command app) {
  Command command = app.add_command(
      "run", "Runs a collective on real processes over libfabric and checks every result");
  const auto options = std::make_shared<RunOptions>();
  Option file =
      command.text("file", options->file, "A schedule file; without one, a schedule is compiled");
  add_plan_options(command, options->plan, false);
  add_links(command, options->plan);
  add_limits(command, options->plan.limits);
  command.option("--links").describe(
      "routed: a node reaches every peer of its program; hop-by-hop: it has an endpoint for each "
      "lane to a neighbour and no others (a selection is lowered for that, a file must "
      "run hop by hop); default: hop-by-hop if all messages go to neighbours, except on a complete "
      "graph");
  for (const char* name :
       {"--topology", "--collective", "--algorithm", "--root", "--run-length", "--radix",
        "--lambda", "--ratio", "--ports", "--limits", "--embedding"}) {
    command.option(name).excludes(file);
  }
  command.option("--topology").show_default(options->plan.topology);
  command.option("--collective").show_default(options->plan.collective);
  command.option("--algorithm").show_default(options->plan.algorithm);
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
    if (!options->cables.empty() && options->file.empty() &&
        !command.option("--topology").is_given()) {
      options->plan.topology = "file:" + options->cables;
    }
    // Without --window the schedule allows its default, and nodes issue as much as it allows.
    if (command.option("--window").is_given()) {
      options->plan.window = std::to_string(options->launch.window);
      options->plan.window_is_limit = true;
    }
    run_collective(*options);
  });
}

}  // namespace espalier::tools

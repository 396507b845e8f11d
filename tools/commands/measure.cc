// espalier measure: alpha, beta and the postal model's lambda of a fabric, by the two experiments
// of tools/measure/postal.h between node processes.

#include <algorithm>
#include <cstring>
#include <functional>
#include <iostream>
#include <list>
#include <memory>

#include "planner/workload/reference.h"
#include "tools/cluster/start_cluster.h"
#include "tools/commands/candidates.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/host.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/report/measure_report.h"

namespace espalier::tools {
namespace {

struct MeasureArguments : CandidateOptions {
  std::vector<std::string> receivers_text = {"2", "4", "8"};
  std::vector<std::uint32_t> receivers;
  std::string plot;
  topology::LinkClass link_class = topology::LinkClass::kFabric;
};

constexpr std::uint64_t kMaxMeasuredBytes = std::uint64_t{1} << 30;
// One run takes about this long, in experiments directly one after the other: long enough that the
// time to wake a node hardly counts, and short enough that on a machine with other work most runs
// are not interrupted.
constexpr double kRunSeconds = 1e-3;
// A stream lasts about this long.
constexpr double kStreamSeconds = 5e-3;
constexpr std::uint64_t kMinStreamBlocks = 8, kMaxStreamBlocks = 4096;
constexpr std::uint64_t kLongBytes = 16 << 20;  // two longer blocks are a stream
constexpr std::uint64_t kMinExperiments = 4, kMaxExperiments = 2000;
// A run of an experiment that takes this long alone has no other: waking a node does not count.
constexpr double kLongSeconds = 10e-3;

// The nodes of one number of receivers; both experiments are schedules of theirs.
struct ExperimentNodes {
  std::uint32_t receivers = 1;
  std::vector<std::vector<std::uint8_t>> schedules = {};
  cluster::NodeProcesses cluster = {};
};
// Each cluster puts back the signal handlers that it found, so the last one goes first.
struct Experiments {
  std::list<ExperimentNodes> all;
  Experiments() = default;
  Experiments(const Experiments&) = delete;
  Experiments& operator=(const Experiments&) = delete;
  ~Experiments() {
    while (!all.empty()) all.pop_back();
  }
};

// Starts the nodes of group.schedules, with memory for `most` bytes.
void start_group(const MeasureArguments& arguments, std::uint64_t most, ExperimentNodes& group) {
  cluster::LaunchOptions options = arguments.run.launch;
  options.nodes = group.receivers + 1;
  options.topology = "complete:" + std::to_string(options.nodes);
  start_cluster(options, group.schedules, group.cluster);
  for (std::uint32_t node = 0; node < options.nodes; ++node) {
    const std::uint64_t input = node == 0 ? most : 0;  // the others have an output
    or_bad_input(group.cluster.give_memory(node, input, most - input));
  }
  or_negative(group.cluster.await_memory());
}

// Runs one experiment `times` times; the time of one at rank 0, in s. Every receiver's bytes are
// checked.
double run_once(ExperimentNodes& group, Experiment experiment, std::uint64_t bytes,
                std::uint64_t times, std::uint32_t repetition) {
  const reference::ReferenceInput what{Collective::kBroadcast, group.receivers + 1, 0, {}, bytes};
  const auto& members = group.cluster.members();
  reference::fill_input(what, 0, repetition, members[0].memory.input());
  for (std::uint32_t node = 1; node <= group.receivers; ++node) {
    std::memset(members[node].memory.output(), 0xa5, bytes);
  }
  control::RunRequest order{
      .program = static_cast<std::uint32_t>(experiment), .count = bytes, .repetitions = times};
  const bool well = or_negative(group.cluster.run(order));
  for (std::uint32_t node = 0; !well && node <= group.receivers; ++node) {
    const std::string status = group.cluster.describe(node);
    if (status != "ok") negative("rank " + std::to_string(node) + ": " + status);
  }
  for (std::uint32_t node = 1; node <= group.receivers; ++node) {
    if (std::memcmp(members[node].memory.output(), members[0].memory.input(), bytes) != 0) {
      negative("rank " + std::to_string(node) + " has wrong bytes");
    }
  }
  const control::Report& report = members[0].report;
  return static_cast<double>(report.end_ns - report.begin_ns) * 1e-9 / static_cast<double>(times);
}

// The times of one experiment, repetition by repetition.
struct Series {
  ExperimentNodes* group;
  Experiment experiment;
  std::uint64_t times;  // of one after the other, in a run
  std::vector<double> seconds;
};

// The spread of the lambdas of single repetitions.
void add_spread(const std::vector<Series>& all, std::uint32_t repetitions, MeasuredSize& size) {
  std::vector<double> lambdas;
  for (std::uint32_t i = 0; i < repetitions; ++i) {
    std::vector<Timing> timings;
    timings.reserve(all.size());
    for (const Series& series : all) {
      timings.push_back({series.experiment, series.group->receivers, series.seconds[i]});
    }
    const Postal postal = fit_postal(timings);
    if (postal.lambda > 0) lambdas.push_back(postal.lambda);
  }
  if (2 * lambdas.size() < repetitions) return;
  std::sort(lambdas.begin(), lambdas.end());
  size.lambda_low = lambdas[lambdas.size() / 4];
  size.lambda_high = lambdas[lambdas.size() - 1 - lambdas.size() / 4];
}

// The timings of one size: repetitions of all its experiments in turn, so that what disturbs the
// machine for a while disturbs all alike.
MeasuredSize measure_size(const MeasureArguments& arguments, std::uint64_t bytes,
                          Experiments& groups, const std::function<void(double)>& progress) {
  std::vector<Series> all;
  for (ExperimentNodes& group : groups.all) {
    for (const Experiment experiment : kExperiments) {
      const double once = run_once(group, experiment, bytes, kMinExperiments, 0);
      const double wanted = std::min(kRunSeconds / std::max(once, 1e-9), 1e9);
      all.push_back({&group,
                     experiment,
                     std::clamp(static_cast<std::uint64_t>(wanted),
                                once > kLongSeconds ? 1 : kMinExperiments, kMaxExperiments),
                     {}});
    }
  }
  for (std::uint32_t i = 0; i < arguments.run.repeat; ++i) {
    for (Series& series : all) {
      series.seconds.push_back(
          run_once(*series.group, series.experiment, bytes, series.times, i + 1));
    }
    progress((i + 1.0) / arguments.run.repeat);
  }
  MeasuredSize size;
  size.bytes = bytes;
  for (const Series& series : all) {
    const auto [least, most] = std::minmax_element(series.seconds.begin(), series.seconds.end());
    size.timings.push_back({series.experiment, series.group->receivers, median(series.seconds)});
    size.least.push_back(*least);
    size.most.push_back(*most);
  }
  std::vector<double> one_way;  // both experiments, repetition by repetition
  for (const Series& series : all) {
    if (series.group->receivers != 1) continue;
    for (const double seconds : series.seconds) one_way.push_back(seconds / 2);
  }
  size.one_way = median_time(std::move(one_way));
  add_spread(all, arguments.run.repeat, size);
  return size;
}

// The time between the blocks of a stream along a chain of nodes, at the last one.
MeasuredTime measure_gap(const MeasureArguments& arguments, const MeasuredSize& size,
                         std::uint32_t receivers) {
  const double fit = kStreamSeconds / std::max(size.one_way.seconds, 1e-9);
  const std::uint64_t least = size.bytes > kLongBytes ? 2 : kMinStreamBlocks;
  const auto blocks = std::clamp(static_cast<std::uint64_t>(fit), least, kMaxStreamBlocks);
  const std::uint64_t block = std::max<std::uint64_t>(1, size.bytes);
  ExperimentNodes group{.receivers = receivers};
  group.schedules.push_back(stream_file(receivers + 1, static_cast<std::uint32_t>(block)));
  start_group(arguments, blocks * block, group);
  std::vector<double> seconds;
  for (std::uint32_t i = 0; i <= arguments.run.repeat; ++i) {
    (void)run_once(group, Experiment::kEcho, blocks * block, 1, i);
    const control::Report& report = group.cluster.members()[receivers].report;
    const double all = static_cast<double>(report.end_ns - report.begin_ns) * 1e-9;
    // The first run warms up.
    const double first = receivers * size.one_way.seconds;
    if (i > 0) seconds.push_back(std::max((all - first) / static_cast<double>(blocks - 1), 0.0));
  }
  return median_time(std::move(seconds));
}

// The time of a hop of one message along a chain of nodes that wait for it: of the slowest node, as
// `espalier run` counts.
MeasuredTime measure_hop(const MeasureArguments& arguments, const MeasuredSize& size) {
  const std::uint64_t block = std::max<std::uint64_t>(1, size.bytes);
  ExperimentNodes group{.receivers = arguments.receivers.back()};
  group.schedules.push_back(stream_file(group.receivers + 1, static_cast<std::uint32_t>(block)));
  start_group(arguments, block, group);
  std::vector<double> seconds;
  for (std::uint32_t i = 0; i <= arguments.run.repeat; ++i) {
    (void)run_once(group, Experiment::kEcho, block, 1, i);
    std::uint64_t longest = 0;
    for (const auto& member : group.cluster.members()) {
      longest = std::max(longest, member.report.end_ns - member.report.begin_ns);
    }
    // The first run warms up.
    if (i > 0) seconds.push_back(static_cast<double>(longest) * 1e-9 / group.receivers);
  }
  return median_time(std::move(seconds));
}

// What only a model needs.
void measure_streams(const MeasureArguments& arguments, Measured& measured) {
  for (MeasuredSize& size : measured.sizes) size.gap = measure_gap(arguments, size, 1);
  if (!shares_processors(measured)) return;
  MeasuredSize& large = measured.sizes.back();
  large.chain_gap = measure_gap(arguments, large, arguments.receivers.back());
  measured.hop = measure_hop(arguments, measured.sizes.front());
}

// Without --ranks-per-host, all processes are on this host, unless a prefix starts them.
std::uint32_t ranks_on_host(const MeasureArguments& arguments) {
  const std::uint32_t all = arguments.run.launch.nodes;
  if (arguments.run.ranks_per_host.empty()) return arguments.run.launch.prefix.empty() ? all : 1;
  return static_cast<std::uint32_t>(
      whole_number("--ranks-per-host", arguments.run.ranks_per_host, 1, all));
}

void run_measure(MeasureArguments arguments) {
  if (!arguments.plot.empty()) check_writable(arguments.plot);
  if (!arguments.output.empty()) check_writable(arguments.output);
  find_node(arguments.run.launch);
  if (arguments.sizes.empty()) {
    arguments.sizes = {"8", "64", "512", "4KiB", "16KiB", "64KiB", "256KiB", "1MiB"};
  }
  std::vector<std::uint64_t>& sizes = arguments.bytes;
  for (const std::string& size : arguments.sizes) {
    sizes.push_back(byte_count("--bytes", size, kMaxMeasuredBytes));
  }
  const auto ascending = [](auto& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  ascending(sizes);
  for (const std::string& text : arguments.receivers_text) {
    arguments.receivers.push_back(
        static_cast<std::uint32_t>(whole_number("--receivers", text, 1, kMaxReceivers)));
  }
  arguments.receivers.push_back(1);
  ascending(arguments.receivers);
  if (arguments.receivers.size() < 2) {
    bad_input(
        "--receivers names none above 1, so nothing tells t_s from lambda; expected e.g. 2,4,8");
  }
  arguments.run.launch.window = kMaxWindow;
  arguments.run.launch.nodes = arguments.receivers.back() + 1;
  check_addresses(arguments.run.launch);
  (void)ranks_on_host(arguments);

  Measured measured{.provider = arguments.run.launch.provider,
                    .repetitions = arguments.run.repeat,
                    .processors = usable_processors(),
                    .ranks_on_host = ranks_on_host(arguments),
                    .receivers = arguments.receivers};
  Experiments groups;
  for (const std::uint32_t receivers : arguments.receivers) {
    groups.all.emplace_back().receivers = receivers;
    ExperimentNodes& group = groups.all.back();
    for (const Experiment experiment : kExperiments) {
      group.schedules.push_back(experiment_file(experiment, receivers));
    }
    start_group(arguments, std::max<std::uint64_t>(1, sizes.back()), group);
  }
  {
    Progress progress("measuring");
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto part = [&](double done) {
        progress.show((static_cast<double>(i) + done) / static_cast<double>(sizes.size()));
      };
      measured.sizes.push_back(measure_size(arguments, sizes[i], groups, part));
    }
  }
  evaluate(measured);
  if (!arguments.output.empty()) {
    measure_streams(arguments, measured);
    const predict::Model model = measured_model(measured, time_operators(), arguments.link_class);
    write_file(arguments.output, predict::model_text(model));
  }
  if (!arguments.plot.empty()) write_file(arguments.plot, measured_svg(measured));
  std::cout << (arguments.format == Format::kJson ? measured_json(measured)
                                                  : measured_text(measured))
            << std::flush;
}

constexpr const char* kMeasureExamples =
    "Two experiments of the postal model between node processes. echo: rank 0 sends to k ranks,\n"
    "one after the other, each sends back at once: t_s (k-1+2 lambda). return: rank 0 sends to k\n"
    "ranks, the last one sends to all others and, last, back: 2 t_s (k-1+lambda). From both, by\n"
    "message size: t_s (send), lambda t_s (one way), lambda, and the quartiles of what single\n"
    "repetitions give for it; and alpha and beta of the one way time. With -o it also measures\n"
    "the gap between the blocks of a stream, o (a message alone takes 2 o longer) and gamma (the\n"
    "operators of this machine). Where processes share processors, o follows from the "
    "experiments:\n"
    "name as many receivers as there will be.\n"
    "With --candidates it runs, for each collective and size, every candidate that the model\n"
    "predicts to take at most three times the best time, in turn, and prints what auto took by\n"
    "the model and which was the fastest. The new model has, for this topology, the factor\n"
    "between the measured and the predicted time of each; by it auto takes what was fastest\n"
    "(docs/choosing.md).\n"
    "Examples:\n"
    "  espalier measure --provider mem\n"
    "  espalier measure --provider tcp --plot tcp.svg -o tcp.textproto\n"
    "  espalier measure --candidates complete:8 --model tcp.textproto -o tuned.textproto\n"
    "  espalier measure --candidates complete:8 --collective allreduce --bytes 1KiB,1MiB \\\n"
    "      --model tuned.textproto -o tuned.textproto\n"
    "  espalier run --bytes 64KiB --model tcp.textproto\n"
    "Exit status: 0 done; 1 a wrong result or a failed node; 2 bad input.";

void add_candidate_options(Command command, MeasureArguments& arguments) {
  command.text("--candidates", arguments.topology,
               "Measure the candidates near the best on this topology instead, and add their times "
               "to --model");
  command.text("--model", arguments.run.model, "With --candidates: a model that -o wrote");
  command.list("--collective", arguments.collectives,
               "With --candidates: only these; default: all");
  command.number("--rounds", arguments.rounds, 1, 1000,
                 "With --candidates: starts of each candidate's nodes; all candidates take turns");
}

// Which options go with --candidates. Throws Failure (bad input).
void check_kind(const Command& command) {
  const bool candidates = command.option("--candidates").is_given();
  for (const char* name : {"--model", "--output"}) {
    if (!candidates || command.option(name).is_given()) continue;
    bad_input(std::string("--candidates adds to a model; expected ") + name + " as well");
  }
  for (const char* name : {"--model", "--collective", "--rounds"}) {
    if (candidates || !command.option(name).is_given()) continue;
    bad_input(std::string(name) + " applies only to --candidates; expected it as well");
  }
}

}  // namespace

void add_measure(Command app) {
  Command command = app.add_command(
      "measure", "Measures alpha, beta and lambda of a fabric, or its candidates, with processes");
  const auto arguments = std::make_shared<MeasureArguments>();
  run_command::RunOptions& run = arguments->run;
  cluster::LaunchOptions& launch = run.launch;
  run.repeat = 31;
  add_node_options(command, launch);
  add_place_options(command, launch);
  command
      .list("--bytes", arguments->sizes,
            std::string("Message sizes (") + kByteUnits +
                "); with --candidates of all ranks' parts together where counts are per rank, and "
                "by default 8,1KiB,16KiB,64KiB,512KiB,4MiB")
      .show_default("8,64,512,4KiB,16KiB,64KiB,256KiB,1MiB");
  command.number("--repeat", run.repeat, 1, 100000,
                 "Repetitions, of which the median is printed; with --candidates in a start, by "
                 "default 8, and of messages above 10 ms at most 2, every fifth round");
  command.text(
      "-o,--output", arguments->output,
      "Also measure streams, o and gamma, and write a model with confidence intervals into this "
      "file, for --model");
  add_candidate_options(command, *arguments);
  const Option candidates = command.option("--candidates");
  command
      .list("--receivers", arguments->receivers_text,
            "Numbers of receivers, k; 1 is always measured")
      .show_default("2,4,8")
      .excludes(candidates);
  command
      .word(
          "--link-class", {"fabric", "on-chip", "memory", "serial"},
          [arguments](std::size_t index) {
            arguments->link_class = static_cast<topology::LinkClass>(index);
          },
          "With -o: the class of the links that were measured")
      .show_default("fabric")
      .excludes(candidates);
  command.text("--plot", arguments->plot, "Also draw it into this SVG file").excludes(candidates);
  command.text("--ranks-per-host", run.ranks_per_host,
               "Processes that share a host's processors; default: all, or 1 behind a prefix; with "
               "--candidates as for 'espalier run'");
  add_format(command, arguments->format);
  command.set_footer(kMeasureExamples);
  command.set_action([arguments, command] {
    check_kind(command);
    if (arguments->topology.empty()) return run_measure(*arguments);
    if (!command.option("--repeat").is_given()) arguments->run.repeat = 8;
    arguments->run.warmup = 2;
    measure_candidates(*arguments);
  });
}

}  // namespace espalier::tools

// espalier simulate: runs a schedule file on real machines in virtual time, and checks every
// result.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "collectives/algorithms/algorithms.h"
#include "collectives/machine/machine.h"
#include "hal/sim/sim.h"
#include "tools/commands.h"
#include "tools/cost_model.h"
#include "tools/failure.h"
#include "tools/loaded.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/reference.h"

namespace espalier::tools {
namespace {

struct Arguments {
  std::string file, bytes, seed = "1", topology, op = "sum", type = "f32", model;
  double alpha = 1e-6, beta = 1e-9, jitter = 0;
  Format format = Format::kText;
};

constexpr std::uint64_t kMostMemory = 4ull << 30;

struct Outcome {
  sim::RunResult run;
  std::string wrong;  // what is wrong with the results, one line; empty: nothing
};

struct Report {
  std::uint64_t bytes = 0;
  Layout layout;
  std::int64_t predicted_steps = 0, bound_steps = 0;
  double predicted_seconds = 0;
  CostModel::Line line;  // what the simulated network takes for a block
  Outcome lock_step, free_running;
};

reference::Case make_case(const Program& program, const Arguments& arguments) {
  reference::Case run;
  run.collective = program.collective;
  run.ranks = program.ranks;
  run.root = program.root;
  if (!arguments.bytes.empty()) {
    run.bytes = byte_count("--bytes", arguments.bytes, kMaxMessageBytes);
  } else if (run.collective != espalier_Collective_BARRIER) {
    bad_input("no --bytes; expected the size of the message, e.g. 64KiB");
  }
  std::string error;
  if (reference::combines(run.collective) &&
      !reference::parse_operator(arguments.op, arguments.type, run.op, error)) {
    bad_input(one_line(error));
  }
  if (!reference::supported(run, error)) bad_input(error);
  return run;
}

// Memory and machine of one node.
struct Node {
  std::vector<std::uint8_t> input, output;
  std::unique_ptr<std::max_align_t[]> scratch;
  std::unique_ptr<Machine> machine;
};

void start_node(const LoadedSchedule& loaded, std::uint32_t number, const reference::Case& run,
                const Layout& layout, Endpoint& endpoint, Node& node) {
  const Program& program = loaded.programs[number];
  const bool input = !is_router(program) && reference::has_input(run, number);
  const bool output = !is_router(program) && reference::has_result(run, number);
  if (input) {
    node.input.resize(std::max<std::uint64_t>(reference::input_bytes(run, number), 1));
    reference::fill_input(run, number, 0, node.input.data());
  }
  // Rubbish, so that a byte never written shows.
  if (output) {
    node.output.assign(std::max<std::uint64_t>(reference::result_bytes(run, number), 1), 0xa5);
  }
  Buffers buffers;
  buffers.input = input ? node.input.data() : nullptr;
  buffers.output = output ? node.output.data() : nullptr;
  buffers.scratch_bytes = scratch_needed(program, layout);
  node.scratch =
      std::make_unique<std::max_align_t[]>(buffers.scratch_bytes / sizeof(std::max_align_t) + 1);
  buffers.scratch = node.scratch.get();
  node.machine = std::make_unique<Machine>();
  Status status = node.machine->init(endpoint, MachineConfig{});
  if (status == Status::kOk) {
    status = node.machine->start(program, buffers, run.op, reference::count(run));
  }
  if (status == Status::kOk) return;
  negative(loaded.topology->node_name(number) + " cannot start: " + status_name(status));
}

// A network with all nodes started, but `absent`.
class Simulation {
 public:
  Simulation(const LoadedSchedule& loaded, const reference::Case& run, const Layout& layout,
             const sim::Model& model, std::uint32_t absent = ~0u)
      : network_(model, sim::links_of(pointers(loaded))),
        nodes_(loaded.programs.size()),
        latency_ticks_(std::max<std::uint32_t>(1, loaded.programs.front().latency_ticks)) {
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      if (node != absent) {
        start_node(loaded, node, run, layout, network_.endpoint(node), nodes_[node]);
      }
      machines_.push_back(nodes_[node].machine.get());
    }
  }

  Outcome finish(const reference::Case& run, bool lock_step) {
    Outcome outcome;
    outcome.run = lock_step ? sim::run_lock_step(network_, machines_, latency_ticks_)
                            : sim::run(network_, machines_);
    reference::Results results(run, 0);
    for (std::uint32_t rank = 0; rank < run.ranks && outcome.wrong.empty(); ++rank) {
      if (reference::result_bytes(run, rank) == 0) continue;
      if (nodes_[rank].output != results.of(rank)) {
        outcome.wrong = "wrong result on rank " + std::to_string(rank);
      }
    }
    return outcome;
  }

  // The first node that ends well within `until_ns`; -1: none.
  std::int64_t first_to_end(std::uint64_t until_ns) {
    do {
      for (std::uint32_t node = 0; node < machines_.size(); ++node) {
        if (machines_[node] != nullptr && machines_[node]->poll() == Status::kOk) return node;
      }
    } while (network_.advance(until_ns));
    return -1;
  }

 private:
  static std::vector<const Program*> pointers(const LoadedSchedule& loaded) {
    std::vector<const Program*> programs;
    for (const Program& program : loaded.programs) programs.push_back(&program);
    return programs;
  }

  sim::Network network_;
  std::vector<Node> nodes_;
  std::vector<Machine*> machines_;
  std::uint32_t latency_ticks_;
};

// A barrier has no bytes to look at: it is right if nobody ends it while any one rank is absent.
// Else what happened.
std::string check_barrier(const LoadedSchedule& loaded, const reference::Case& run,
                          const Layout& layout, const sim::Model& model) {
  constexpr std::uint64_t kLong = 500'000'000;  // ns, before any machine gives a link up
  for (std::uint32_t absent = 0; run.ranks > 1 && absent < run.ranks; ++absent) {
    const std::int64_t node = Simulation(loaded, run, layout, model, absent).first_to_end(kLong);
    if (node >= 0) {
      return "rank " + std::to_string(node) + " ends the barrier while rank " +
             std::to_string(absent) + " has not begun it";
    }
  }
  return "";
}

// Bytes that a simulation of the whole schedule holds.
std::uint64_t memory_needed(const LoadedSchedule& loaded, const reference::Case& run,
                            const Layout& layout) {
  std::uint64_t bytes = 0;
  for (const Program& program : loaded.programs) {
    bytes += scratch_needed(program, layout);
    if (is_router(program)) continue;
    bytes += reference::input_bytes(run, program.node) + reference::result_bytes(run, program.node);
  }
  return bytes;
}

sim::Model model_of(const LoadedSchedule& loaded, const CostModel::Line& line) {
  const Program& program = loaded.programs.front();
  sim::Model model;
  model.alpha = line.alpha;
  model.beta = line.beta;
  // Else a port is a link's own, or only sends have one.
  model.one_port = program.port_model == espalier_PortModel_ONE_PORT_DUPLEX ||
                   program.port_model == espalier_PortModel_SIMPLEX;
  if (program_nodes(program) > program.ranks) {
    const topology::Topology* topology = loaded.topology.get();
    model.lanes = [topology](std::uint32_t from, std::uint32_t to) {
      return topology->capacity(from, to);
    };
  }
  return model;
}

Report make_report(const LoadedSchedule& loaded, const Arguments& arguments) {
  const Program& program = loaded.programs.front();
  const reference::Case run = make_case(program, arguments);
  Report report;
  report.bytes = run.bytes;
  const Status status =
      make_layout(program, reference::count(run), element_bytes(run.op), report.layout);
  if (status != Status::kOk) {
    bad_input(std::to_string(run.bytes) + " bytes: " + status_name(status));
  }
  if (memory_needed(loaded, run, report.layout) > kMostMemory) {
    bad_input(std::to_string(run.bytes) + " bytes on " + counted(loaded.programs.size(), "node") +
              " need more than 4 GiB here; expected fewer bytes (blocks, not bytes, make steps)");
  }
  const CostModel cost = arguments.model.empty() ? CostModel(arguments.alpha, arguments.beta)
                                                 : CostModel::read(arguments.model);
  const std::int64_t blocks = report.layout.blocks;
  report.line = cost.line(static_cast<double>(slot_bytes(report.layout)));
  report.predicted_steps = count_value(program.counts[program.steps_ref], blocks);
  report.bound_steps = count_value(program.counts[program.bound_ref], blocks);
  report.predicted_seconds = predict(loaded.programs, report.layout, cost);
  sim::Model model = model_of(loaded, report.line);
  Progress progress("simulating");
  progress.at(0);
  report.lock_step = Simulation(loaded, run, report.layout, model).finish(run, true);
  progress.at(0.5);
  model.jitter = arguments.jitter;
  model.seed = whole_number("--seed", arguments.seed, 0, ~0ull);
  report.free_running = Simulation(loaded, run, report.layout, model).finish(run, false);
  if (run.collective == espalier_Collective_BARRIER) {
    report.free_running.wrong = check_barrier(loaded, run, report.layout, model);
  }
  return report;
}

void print_report(const LoadedSchedule& loaded, const Arguments& arguments, const Report& report) {
  const Program& program = loaded.programs.front();
  const bool right = report.lock_step.wrong.empty() && report.free_running.wrong.empty();
  if (arguments.format == Format::kJson) {
    print_json({{"file", loaded.name},
                {"topology", loaded.topology->spec()},
                {"collective", collective_name(program.collective)},
                {"algorithm", program.algorithm},
                {"bytes", report.bytes},
                {"bytes_are", counts_per_rank(program.collective) ? "per rank" : "whole message"},
                {"segments", report.layout.segments},
                {"blocks", report.layout.blocks},
                {"alpha", report.line.alpha},
                {"beta", report.line.beta},
                {"predicted_steps", report.predicted_steps},
                {"simulated_steps", report.lock_step.run.steps},
                {"bound_steps", report.bound_steps},
                {"predicted_seconds", report.predicted_seconds},
                {"lock_step_seconds", report.lock_step.run.seconds},
                {"simulated_seconds", report.free_running.run.seconds},
                {"lock_step_status", status_name(report.lock_step.run.status)},
                {"status", status_name(report.free_running.run.status)},
                {"right", right}});
    return;
  }
  std::printf("%s: %s by %s on %s, %llu bytes%s\n", one_line(loaded.name).c_str(),
              collective_name(program.collective), program.algorithm,
              loaded.topology->title().c_str(), static_cast<unsigned long long>(report.bytes),
              counts_per_rank(program.collective) ? " a rank" : "");
  std::printf(
      "  blocks     %s of N = %u, %llu bytes a block\n",
      counted(report.layout.segments, "segment").c_str(), report.layout.blocks,
      static_cast<unsigned long long>(report.layout.block_elements * report.layout.element_bytes));
  std::printf("  steps      %lld predicted, %lld simulated in lock step, %lld at least\n",
              static_cast<long long>(report.predicted_steps),
              static_cast<long long>(report.lock_step.run.steps),
              static_cast<long long>(report.bound_steps));
  std::printf(
      "  time       %s predicted (steps x (alpha + beta x block)), %s simulated free running\n",
      seconds_text(report.predicted_seconds).c_str(),
      seconds_text(report.free_running.run.seconds).c_str());
  const bool barrier = program.collective == espalier_Collective_BARRIER;
  std::printf("  results    %s\n", !right    ? "WRONG"
                                   : barrier ? "nobody ends while any rank is absent"
                                             : "right on every rank");
}

// Throws the verdict if it is negative.
void judge(const char* how, const Outcome& outcome) {
  if (outcome.run.status != Status::kOk) {
    negative(std::string(how) + ": " + status_name(outcome.run.status) +
             (outcome.run.message.empty() ? "" : ": " + outcome.run.message));
  }
  if (!outcome.wrong.empty()) negative(std::string(how) + ": " + outcome.wrong);
}

void run_simulate(const Arguments& arguments) {
  if (!(arguments.alpha >= 0 && arguments.alpha < 1e6 && arguments.beta >= 0 &&
        arguments.beta < 1e6 && arguments.jitter >= 0 && arguments.jitter < 1e6)) {
    bad_input("--alpha, --beta and --jitter must be numbers from 0 to 1e6");
  }
  const LoadedSchedule loaded = load_schedule(arguments.file, arguments.topology);
  const Report report = make_report(loaded, arguments);
  print_report(loaded, arguments, report);
  judge("in lock step", report.lock_step);
  judge("free running", report.free_running);
  if (report.lock_step.run.steps > report.predicted_steps) {
    negative("in lock step: " + std::to_string(report.lock_step.run.steps) +
             " steps, more than the " + std::to_string(report.predicted_steps) + " claimed");
  }
}

}  // namespace

void add_simulate(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "simulate", "Runs a schedule in virtual time and checks every rank's result");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("file", arguments->file, "The schedule file")->required();
  command->add_option(
      "--bytes", arguments->bytes,
      "The message, e.g. 4096 or 64KiB; scatter, gather, allgather, reduce-scatter and "
      "all-to-all: one rank's part");
  command->add_option("--alpha", arguments->alpha, "Start-up of a block, seconds")
      ->capture_default_str();
  command->add_option("--beta", arguments->beta, "Seconds a byte")->capture_default_str();
  command->add_option("--model", arguments->model,
                      "alpha and beta as 'espalier measure --format json' measured them");
  command->add_option("--jitter", arguments->jitter, "Each transfer is up to this fraction longer")
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "Of the jitter")->capture_default_str();
  command
      ->add_option("--op", arguments->op,
                   "Operator of a reduction or scan; affine does not commute")
      ->capture_default_str();
  command->add_option("--type", arguments->type, "Element type of a reduction or scan")
      ->capture_default_str();
  command->add_option("--topology", arguments->topology, "Refuse the file if it is for another");
  add_format(*command, arguments->format);
  command->footer(
      "Runs twice: in lock step, counting steps, and free running, measuring virtual time.\n"
      "Examples:\n"
      "  espalier simulate b.esp --bytes 1MiB\n"
      "  espalier simulate b.esp --bytes 64MiB --alpha 30e-6 --beta 0.8e-10");
  command->callback([arguments] { run_simulate(*arguments); });
}

}  // namespace espalier::tools

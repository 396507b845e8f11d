// espalier simulate: runs a schedule file on real machines in virtual time, and checks every
// result.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "collectives/algorithms/algorithms.h"
#include "collectives/machine/machine.h"
#include "hal/sim/sim.h"
#include "tools/commands.h"
#include "tools/failure.h"
#include "tools/loaded.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/reference.h"

namespace espalier::tools {
namespace {

struct Arguments {
  std::string file, bytes, seed = "1", topology, op = "sum", type = "f32";
  double alpha = 1e-6, beta = 1e-9, jitter = 0;
  Format format = Format::kText;
};

constexpr std::uint64_t kMostMemory = 4ull << 30;

struct Outcome {
  sim::RunResult run;
  std::int64_t wrong_rank = -1;  // the first whose result is not the reference's
};

struct Report {
  std::uint64_t bytes = 0;
  Layout layout;
  std::int64_t predicted_steps = 0, bound_steps = 0;
  double predicted_seconds = 0;
  Outcome lock_step, free_running;
};

reference::Case make_case(const Program& program, const Arguments& arguments) {
  reference::Case run;
  run.collective = program.collective;
  run.ranks = program.ranks;
  run.root = program.root;
  run.bytes = byte_count("--bytes", arguments.bytes, kMaxMessageBytes);
  if (program.collective == espalier_Collective_BROADCAST) return run;
  if (!parse_op(arguments.op.c_str(), run.op)) {
    bad_input("unknown operator '" + one_line(arguments.op) + "'; expected sum, min, max, ...");
  }
  if (!parse_type(arguments.type.c_str(), run.type)) {
    bad_input("unknown type '" + one_line(arguments.type) + "'; expected i32, f32, f64, ...");
  }
  const std::uint32_t size = element_bytes({run.op, run.type});
  if (size != 0 && run.bytes % size != 0) {
    bad_input(std::to_string(run.bytes) + " bytes are no whole number of " + type_name(run.type) +
              "; expected a multiple of " + std::to_string(size));
  }
  std::string error;
  if (!reference::supported(run, error)) bad_input(error);
  return run;
}

// Memory and machine of one rank.
struct Rank {
  std::vector<std::uint8_t> input, output;
  std::unique_ptr<std::max_align_t[]> scratch;
  std::unique_ptr<Machine> machine;
};

void start_rank(const Program& program, const reference::Case& run, const Layout& layout,
                Endpoint& endpoint, Rank& rank) {
  const bool input = reference::has_input(run, program.node);
  const bool output = reference::has_result(run, program.node);
  if (input) {
    rank.input.resize(std::max<std::uint64_t>(run.bytes, 1));
    reference::fill_input(run, program.node, 0, rank.input.data());
  }
  // Rubbish, so that a byte never written shows.
  if (output) rank.output.assign(std::max<std::uint64_t>(run.bytes, 1), 0xa5);
  Buffers buffers;
  buffers.input = input ? rank.input.data() : nullptr;
  buffers.output = output ? rank.output.data() : nullptr;
  buffers.scratch_bytes = scratch_needed(program, layout);
  rank.scratch =
      std::make_unique<std::max_align_t[]>(buffers.scratch_bytes / sizeof(std::max_align_t) + 1);
  buffers.scratch = rank.scratch.get();
  rank.machine = std::make_unique<Machine>();
  Status status = rank.machine->init(endpoint, MachineConfig{});
  if (status == Status::kOk) {
    status = rank.machine->start(program, buffers, {run.op, run.type}, layout.count);
  }
  if (status != Status::kOk) {
    negative("rank " + std::to_string(program.node) + " cannot start: " + status_name(status));
  }
}

Outcome simulate(const LoadedSchedule& loaded, const reference::Case& run, const Layout& layout,
                 const sim::Model& model, bool lock_step,
                 const std::vector<std::uint8_t>& expected) {
  std::vector<const Program*> programs;
  for (const Program& program : loaded.programs) programs.push_back(&program);
  sim::Network network(model, sim::links_of(programs));
  std::vector<Rank> ranks(programs.size());
  std::vector<Machine*> machines;
  for (std::uint32_t node = 0; node < ranks.size(); ++node) {
    start_rank(*programs[node], run, layout, network.endpoint(node), ranks[node]);
    machines.push_back(ranks[node].machine.get());
  }
  Outcome outcome;
  outcome.run = lock_step ? sim::run_lock_step(network, machines) : sim::run(network, machines);
  for (std::uint32_t node = 0; node < ranks.size() && outcome.wrong_rank < 0; ++node) {
    if (!reference::has_result(run, node) || run.bytes == 0) continue;
    if (std::memcmp(ranks[node].output.data(), expected.data(), run.bytes) != 0) {
      outcome.wrong_rank = node;
    }
  }
  return outcome;
}

Report make_report(const LoadedSchedule& loaded, const Arguments& arguments) {
  const Program& program = loaded.programs.front();
  const reference::Case run = make_case(program, arguments);
  const std::uint32_t size =
      program.collective == espalier_Collective_BROADCAST ? 1 : element_bytes({run.op, run.type});
  Report report;
  report.bytes = run.bytes;
  const Status status = make_layout(program, run.bytes / size, size, report.layout);
  if (status != Status::kOk) {
    bad_input(std::to_string(run.bytes) + " bytes: " + status_name(status));
  }
  const std::uint64_t a_rank = 2 * run.bytes + scratch_needed(program, report.layout);
  if (a_rank > kMostMemory / program.ranks) {
    bad_input(std::to_string(run.bytes) + " bytes on " + counted(program.ranks, "rank") +
              " need more than 4 GiB here; expected fewer bytes (blocks, not bytes, make steps)");
  }
  const std::int64_t blocks = report.layout.blocks;
  report.predicted_steps = count_value(program.counts[program.steps_ref], blocks);
  report.bound_steps = count_value(program.counts[program.bound_ref], blocks);
  const double block_bytes = static_cast<double>(report.layout.block_elements) * size;
  report.predicted_seconds = static_cast<double>(report.predicted_steps) *
                             (arguments.alpha + arguments.beta * block_bytes);
  const std::vector<std::uint8_t> expected = reference::expected(run, 0);
  sim::Model model;
  model.alpha = arguments.alpha;
  model.beta = arguments.beta;
  model.one_port = program.port_model != espalier_PortModel_MULTIPORT;
  Progress progress("simulating");
  progress.at(0);
  report.lock_step = simulate(loaded, run, report.layout, model, true, expected);
  progress.at(0.5);
  model.jitter = arguments.jitter;
  model.seed = whole_number("--seed", arguments.seed, 0, ~0ull);
  report.free_running = simulate(loaded, run, report.layout, model, false, expected);
  return report;
}

void print_report(const LoadedSchedule& loaded, const Arguments& arguments, const Report& report) {
  const Program& program = loaded.programs.front();
  const bool right = report.lock_step.wrong_rank < 0 && report.free_running.wrong_rank < 0;
  if (arguments.format == Format::kJson) {
    print_json({{"file", loaded.name},
                {"topology", loaded.topology->spec()},
                {"collective", collective_name(program.collective)},
                {"algorithm", program.algorithm},
                {"bytes", report.bytes},
                {"segments", report.layout.segments},
                {"blocks", report.layout.blocks},
                {"alpha", arguments.alpha},
                {"beta", arguments.beta},
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
  std::printf("%s: %s by %s on %s, %llu bytes\n", one_line(loaded.name).c_str(),
              collective_name(program.collective), program.algorithm,
              loaded.topology->spec().c_str(), static_cast<unsigned long long>(report.bytes));
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
  std::printf("  results    %s\n", right ? "right on every rank" : "WRONG");
}

// Throws the verdict if it is negative.
void judge(const char* how, const Outcome& outcome) {
  if (outcome.run.status != Status::kOk) {
    negative(std::string(how) + ": " + status_name(outcome.run.status) +
             (outcome.run.message.empty() ? "" : ": " + outcome.run.message));
  }
  if (outcome.wrong_rank >= 0) {
    negative(std::string(how) + ": wrong result on rank " + std::to_string(outcome.wrong_rank));
  }
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
  command->add_option("--bytes", arguments->bytes, "The whole message, e.g. 4096 or 64KiB")
      ->required();
  command->add_option("--alpha", arguments->alpha, "Start-up of a block, seconds")
      ->capture_default_str();
  command->add_option("--beta", arguments->beta, "Seconds a byte")->capture_default_str();
  command->add_option("--jitter", arguments->jitter, "Each transfer is up to this fraction longer")
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "Of the jitter")->capture_default_str();
  command->add_option("--op", arguments->op, "Operator of a reduction")->capture_default_str();
  command->add_option("--type", arguments->type, "Element type of a reduction")
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

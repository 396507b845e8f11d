// espalier simulate: runs a schedule file on real machines in virtual time, over the real links of
// its topology, and checks every result.

#include "tools/commands/simulate.h"

#include <memory>

#include "collectives/predict/predict.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "planner/files/schedule_set.h"
#include "planner/make/bound.h"
#include "planner/workload/counts.h"
#include "planner/workload/reference.h"
#include "tools/commands/commands.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/result_files.h"
#include "tools/common/schedules.h"
#include "tools/report/bound.h"
#include "tools/report/selection_report.h"
#include "tools/report/simulate_report.h"
#include "tools/report/trace_json.h"
#include "tools/simulate/simulated_memory.h"
#include "tools/simulate/simulation.h"
#include "tools/simulate/stored_schedule.h"

namespace espalier::tools {
namespace {

constexpr double kMaxJitter = 1000;

reference::ReferenceInput make_case(const Program& program, const SimulateOptions& arguments) {
  reference::ReferenceInput run = case_of(program, arguments.combining);
  if (!arguments.counts.empty()) {
    set_counts(arguments.counts, run);
  } else if (!arguments.bytes.empty()) {
    run.bytes = byte_count("--bytes", arguments.bytes, kMaxMessageBytes);
  } else if (run.collective != Collective::kBarrier) {
    bad_input("no --bytes; expected the size of the message, e.g. 64KiB");
  }
  if (run.collective == Collective::kBarrier && !arguments.output.empty()) {
    bad_input("--output writes results, and a barrier has none; expected no --output");
  }
  or_bad_input(arguments.no_data ? reference::check_whole_elements(run)
                                 : reference::check_supported(run));
  return run;
}

// Refuses the options that need the bytes.
void check_no_data(const SimulateOptions& arguments) {
  if (!arguments.no_data) return;
  if (!arguments.output.empty()) {
    bad_input("--output writes results, and with --no-data no rank has one; expected one of them");
  }
  if (!arguments.combining.op.empty()) {
    bad_input(
        "--op is for data, and with --no-data no operator is applied; expected one of them (--type "
        "stays: it sets the size of an element)");
  }
}

// The seed of all jitter. Throws Failure (bad input) if there is no jitter.
std::uint64_t seed_of(const SimulateOptions& arguments) {
  if (arguments.seed.empty()) return 1;
  const bool jitter =
      arguments.jitter != 0 || arguments.link_jitter != 0 || arguments.node_jitter != 0;
  if (!jitter) {
    bad_input("--seed is for jitter; expected --jitter, --link-jitter or --node-jitter as well");
  }
  return whole_number("--seed", arguments.seed, 0, ~0ull);
}

// The member of a selection that serves the message.
planner::ChosenMember choose(const planner::ScheduleSet& set, const SimulateOptions& arguments) {
  if (!set.selected) return {};
  const planner::ScheduleSet::Member& first = planner::first_member(set);
  const planner::LoadedSchedule opened =
      or_bad_input(planner::open_schedule(first.name, first.bytes, arguments.topology));
  const auto program = std::make_unique<OwnedProgram>();
  or_bad_input(planner::decode(opened, 0, *program));
  return or_bad_input(planner::choose_member(set, make_case(*program, arguments)));
}

predict::Model cost_of(const SimulateOptions& arguments) {
  return arguments.model.empty() ? predict::line_model(arguments.alpha, arguments.beta)
                                 : or_bad_input(predict::read_model(arguments.model));
}

// Fills in the predictions.
void predict_into(SimulateReport& report, const StoredSchedule& schedule,
                  const predict::LinkCost& cost) {
  const Program& program = schedule.first();
  const auto program_of = [&schedule](std::uint32_t node) -> const Program& {
    return schedule.program(node);
  };
  const std::int64_t blocks = report.layout.blocks;
  const predict::CostLine& line = cost.line(slot_bytes(report.layout));
  report.alpha = seconds_of(line.alpha_ps);
  report.beta = seconds_per_byte(line.beta_fs);
  report.predicted_steps = count_value(program.counts[program.steps_ref], blocks);
  report.bound_steps = planner::bound_steps(
      planner::bounds_of(*schedule.loaded().topology, program_of), program, blocks);
  report.predicted_seconds =
      seconds_of(predict::by_steps(schedule.nodes(), program_of, report.layout, cost));
}

SimulateReport make_report(StoredSchedule& schedule, const SimulateOptions& arguments) {
  const reference::ReferenceInput run = make_case(schedule.first(), arguments);
  SimulateReport report;
  report.data = !arguments.no_data;
  report.bytes = run.bytes;
  report.counts = run.counts;
  report.counts_option = arguments.counts;
  for (std::uint32_t node = 0; node < schedule.nodes() && !run.counts.empty(); ++node) {
    or_bad_input(planner::check_takes_counts(schedule.program(node), run));
  }
  report.layout = or_bad_input(planner::layout_of(schedule.first(), run));
  SimulatedMemory memory(schedule, run, report.layout, report.data);
  or_bad_input(planner::check_form(
      schedule.loaded(),
      [&schedule](std::uint32_t node) -> const Program& { return schedule.program(node); },
      report.layout.blocks));
  report.switching = arguments.switching;
  const std::uint64_t seed = seed_of(arguments);
  const predict::Model costs = cost_of(arguments);
  const predict::LinkCost& cost =
      predict::slowest(costs, *schedule.loaded().topology, slot_bytes(report.layout));
  predict_into(report, schedule, cost);
  // From here on, no input is refused.
  for (const std::string& directory : {arguments.output, arguments.events}) {
    if (!directory.empty()) make_directory(directory);
  }
  sim::Model model = model_of(schedule, report.layout, cost);
  model.no_data = arguments.no_data;
  model.switching = report.switching;
  Progress progress("simulating");
  report.lock_step = Simulation(schedule, memory, report.layout, model)
                         .lock_step(report.predicted_steps,
                                    [&progress](double done) { progress.show(0.5 * done); });
  model.jitter = arguments.jitter;
  model.link_jitter = arguments.link_jitter;
  model.pace = arguments.node_jitter * seconds_of(cost.send_time(slot_bytes(report.layout)));
  model.seed = seed;
  const bool logged = !arguments.trace.empty() || !arguments.events.empty();
  if (logged) {
    schedule.decode_all();
    for (const std::uint32_t room : log_room(schedule.loaded().programs, report.layout.blocks)) {
      report.logs.emplace_back(room);
    }
  }
  report.free_running =
      Simulation(schedule, memory, report.layout, model, logged ? &report.logs : nullptr)
          .run_freely(report.lock_step.blocks,
                      [&progress](double done) { progress.show(0.5 + 0.5 * done); });
  const bool right =
      report.free_running.run.status == Status::kOk && report.free_running.wrong.empty();
  if (right && !arguments.output.empty()) {
    write_results(arguments.output, run,
                  [&memory](std::uint32_t rank) { return memory.rank(rank); });
  }
  if (run.collective == Collective::kBarrier && report.data) {
    Progress checking("checking");
    report.free_running.wrong = check_barrier(schedule, memory, report.layout, model,
                                              [&checking](double done) { checking.show(done); });
  }
  return report;
}

// Throws Failure if the outcome is a failure or a wrong result.
void judge(const char* how, const Outcome& outcome) {
  if (outcome.run.status != Status::kOk) {
    negative(std::string(how) + ": " + status_name(outcome.run.status) +
             (outcome.run.message.empty() ? "" : ": " + outcome.run.message));
  }
  if (!outcome.wrong.empty()) negative(std::string(how) + ": " + outcome.wrong);
}

void add_message_and_link_options(Command command, SimulateOptions& options) {
  command.text("file", options.file, "The schedule file").required();
  command.text("--bytes", options.bytes,
               "The message, e.g. 4096 or 64KiB; scatter, gather, allgather, reduce-scatter and "
               "all-to-all: one rank's part");
  add_counts_option(command, options.counts);
  Option alpha = command.real("--alpha", options.alpha, 0, 1e6, "Start-up time of a block, s");
  Option beta = command.real("--beta", options.beta, 0, 1, "Time per byte, s/B");
  command
      .text("--model", options.model,
            "A model that 'espalier measure -o' wrote, instead of alpha and beta")
      .excludes(alpha)
      .excludes(beta);
  command.real("--jitter", options.jitter, 0, kMaxJitter,
               "Each transfer takes up to this fraction longer");
  command.real("--link-jitter", options.link_jitter, 0, kMaxJitter,
               "Each link is always slower, by its own fraction up to this one");
  command.real("--node-jitter", options.node_jitter, 0, kMaxJitter,
               "Delay each node's polling by up to this many block times");
  command.text("--seed", options.seed, "Seed of all jitter; default: 1");
  command.word("--switching", {"cut-through", "store-and-forward"}, options.switching,
               "cut-through: a block holds all links of its path at once; store-and-forward: one "
               "after the other");
  add_operator_options(command, options.combining);
  command.text("--topology", options.topology, "Refuse the file if it is for another");
  add_format(command, options.format);
}

}  // namespace

void run_simulate(const SimulateOptions& arguments) {
  check_no_data(arguments);
  if (!arguments.trace.empty()) check_writable(arguments.trace);
  planner::ScheduleSet set = read_schedules(arguments.file);
  const planner::ChosenMember chosen = choose(set, arguments);
  planner::ScheduleSet::Member& member = set.members[chosen.index];
  StoredSchedule schedule(member.name, std::move(member.bytes), arguments.topology);
  SimulateReport report = make_report(schedule, arguments);
  report.chosen = reason_text(set, chosen, report.bytes);
  for (std::uint32_t node = 0; !arguments.events.empty() && node < report.logs.size(); ++node) {
    write_events(arguments.events, node, report.logs[node].log);
  }
  print_report(schedule, report, arguments.format);
  if (!arguments.trace.empty()) {
    std::vector<EventLog> logs;
    for (const NodeLog& node : report.logs) logs.push_back(node.log);
    write_trace(arguments.trace,
                make_trace(schedule.loaded(), logs, report.bytes, report.layout.blocks,
                           "virtual time of the simulation"),
                arguments.format == Format::kText);
  }
  judge("in lock step", report.lock_step);
  judge("free running", report.free_running);
  if (report.lock_step.run.steps > report.predicted_steps) {
    negative("in lock step: " + counted(report.lock_step.run.steps, "step") + ", more than the " +
             std::to_string(report.predicted_steps) + " claimed");
  }
}

void add_simulate(Command app) {
  Command command =
      app.add_command("simulate", "Runs a schedule in virtual time and checks every rank's result");
  auto& arguments = command.bind<SimulateOptions>(run_simulate);
  add_message_and_link_options(command, arguments);
  command.text("--trace", arguments.trace,
               "Write the events of the free run into this file (Trace Event Format)");
  command.flag(
      "--no-data", arguments.no_data,
      "Moves no byte and checks no result. Steps, times, link loads and events are those of a run "
      "with data; time and memory are far less");
  command.text("--output", arguments.output,
               "Write each rank's result to DIR/rank-N.bin, as 'espalier run' does");
  command.text("--events", arguments.events,
               "Write each node's events to DIR/node-N.events, as 'espalier run' does");
  command.set_footer(
      "Runs twice over the topology's links. In lock step it counts the steps and the demand on\n"
      "each link. Free running, with the given jitter, it measures virtual time and waits.\n"
      "The page of 'espalier draw --trace', ui.perfetto.dev and chrome://tracing open a trace.\n"
      "Examples:\n"
      "  espalier simulate b.esp --bytes 1MiB\n"
      "  espalier simulate b.esp --bytes 64MiB --alpha 30e-6 --beta 0.8e-10\n"
      "  espalier simulate b.esp --bytes 1MiB --jitter 0.5 --node-jitter 2 --seed 7\n"
      "  espalier simulate b.esp --bytes 1MiB --switching store-and-forward --format json\n"
      "  espalier simulate b.esp --bytes 64KiB --trace trace.json\n"
      "  espalier simulate gather.esp --counts 100,0,25,3000\n"
      "  espalier simulate million.esp --bytes 512KiB --no-data");
}

}  // namespace espalier::tools

#include "tools/simulate/simulation.h"

#include <algorithm>

#include "espalier/collectives/machine/machine.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

// s that a block holds its sender's port.
double block_seconds(const Layout& layout, double alpha, double beta) {
  return alpha + beta * static_cast<double>(slot_bytes(layout));
}

// The postal model's S and L; 1 and 1 elsewhere.
std::uint32_t send_ticks(const Program& program) { return std::max(1u, program.send_ticks); }
std::uint32_t latency_ticks(const Program& program) { return std::max(1u, program.latency_ticks); }

sim::Cluster::Options options_of(const SimulatedMemory& memory, std::vector<NodeLog>* logs) {
  sim::Cluster::Options options;
  options.config.no_data = !memory.has_data();
  if (logs != nullptr) options.log = [logs](std::uint32_t node) { return &(*logs)[node].log; };
  return options;
}

double tick_of(const Program& program, const Layout& layout, const sim::Model& model) {
  if (latency_ticks(program) == 1) return 0;
  return block_seconds(layout, model.alpha, model.beta) / send_ticks(program);
}

}  // namespace

Simulation::Simulation(const StoredSchedule& schedule, SimulatedMemory& memory,
                       const Layout& layout, const sim::Model& model, std::vector<NodeLog>* logs,
                       std::uint32_t absent)
    : schedule_(schedule),
      memory_(memory),
      tick_(tick_of(schedule.first(), layout, model)),
      cluster_(or_bad_input(sim::Network::create(model, schedule.links())), schedule.programs(),
               options_of(memory, logs)) {
  memory.poison_results();
  for (std::uint32_t node = 0; node < schedule.nodes(); ++node) {
    if (node != absent) start(node);
  }
}

void Simulation::start(std::uint32_t node) {
  const Program& program = schedule_.program(node);
  const Status status =
      cluster_.start(node, program, memory_.of(program), memory_.run().op, memory_.counts(node));
  if (status == Status::kOk) return;
  negative(schedule_.loaded().topology->node_name(node) + " cannot start: " + status_name(status));
}

Outcome Simulation::lock_step(std::int64_t steps, const Report& report) {
  const sim::Tick tick = [&](std::int64_t step) {
    report(steps > 0 ? std::min(1.0, static_cast<double>(step) / static_cast<double>(steps)) : 1);
  };
  Outcome all = outcome(cluster_.run_lock_step(latency_ticks(schedule_.first()), tick));
  // There a step ends when its blocks are in. A tick lasts as long as any other.
  if (tick_ > 0) all.run.seconds = static_cast<double>(all.run.steps) * tick_;
  return all;
}

Outcome Simulation::run_freely(std::uint64_t blocks, const Report& report) {
  const sim::Tick tick = [&](std::int64_t /*step*/) {
    const auto sent = static_cast<double>(cluster_.network().blocks());
    report(blocks > 0 ? std::min(1.0, sent / static_cast<double>(blocks)) : 1);
  };
  cluster_.network().begin_residence(latency_ticks(schedule_.first()));
  Outcome all = outcome(cluster_.run(tick));
  all.links = cluster_.network().traffic();
  return all;
}

Outcome Simulation::outcome(sim::RunResult result) {
  return {.run = std::move(result),
          .wrong = memory_.wrong(),
          .blocks = cluster_.network().blocks(),
          .events = cluster_.network().events(),
          .links = {},
          .contention = cluster_.network().contention(),
          .residence = cluster_.network().residence()};
}

std::string check_barrier(const StoredSchedule& schedule, SimulatedMemory& memory,
                          const Layout& layout, const sim::Model& model,
                          const Simulation::Report& report) {
  constexpr std::uint64_t kLong = 500'000'000;  // ns, before any machine gives a link up
  const std::uint32_t ranks = memory.run().ranks;
  for (std::uint32_t absent = 0; ranks > 1 && absent < ranks; ++absent) {
    report(static_cast<double>(absent) / ranks);
    const std::int64_t node =
        Simulation(schedule, memory, layout, model, nullptr, absent).first_to_end(kLong);
    if (node >= 0) {
      return "rank " + std::to_string(node) + " ends the barrier while rank " +
             std::to_string(absent) + " has not begun it";
    }
  }
  return "";
}

sim::Model model_of(const StoredSchedule& schedule, const Layout& layout,
                    const predict::LinkCost& cost) {
  const Program& program = schedule.first();
  sim::Model model;
  const predict::CostLine& line = cost.line(slot_bytes(layout));
  model.alpha = seconds_of(line.alpha_ps);
  model.beta = seconds_per_byte(line.beta_fs);
  // Otherwise each link has its own port, or only sends have one.
  model.one_port =
      program.port_model == PortModel::kOnePortDuplex || program.port_model == PortModel::kSimplex;
  const topology::Topology* topology = schedule.loaded().topology.get();
  model.lanes = [topology](std::uint32_t from, std::uint32_t to) {
    return topology->capacity(from, to);
  };
  model.route = [topology](std::uint32_t from, std::uint32_t to) {
    return topology->route(from, to);
  };
  model.send_ticks = program.send_ticks;
  // A block leaves its port after S ticks and is in after L.
  const std::uint32_t send = send_ticks(program);
  const double claimed =
      block_seconds(layout, model.alpha, model.beta) * (latency_ticks(program) - send) / send;
  model.latency = std::max(claimed, seconds_of(cost.latency(slot_bytes(layout))));
  return model;
}

}  // namespace espalier::tools

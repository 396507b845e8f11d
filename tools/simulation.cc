#include "tools/simulation.h"

#include <algorithm>

#include "collectives/machine/machine.h"
#include "tools/failure.h"

namespace espalier::tools {
namespace {

// s that a block holds its sender's port.
double block_seconds(const Layout& layout, double alpha, double beta) {
  return alpha + beta * static_cast<double>(slot_bytes(layout));
}

// The postal model's S and L; 1 and 1 elsewhere.
std::uint32_t send_ticks(const Program& program) { return std::max(1u, program.send_ticks); }
std::uint32_t latency_ticks(const Program& program) { return std::max(1u, program.latency_ticks); }

double tick_of(const Program& program, const Layout& layout, const sim::Model& model) {
  if (latency_ticks(program) == 1) return 0;
  return block_seconds(layout, model.alpha, model.beta) / send_ticks(program);
}

std::vector<const Program*> pointers(const LoadedSchedule& loaded) {
  std::vector<const Program*> programs;
  for (const Program& program : loaded.programs) programs.push_back(&program);
  return programs;
}

}  // namespace

Simulation::Simulation(const LoadedSchedule& loaded, const reference::Case& run,
                       const Layout& layout, const sim::Model& model, std::vector<NodeLog>* logs,
                       std::uint32_t absent)
    : programs_(pointers(loaded)),
      blocks_(layout.blocks),
      tick_(tick_of(loaded.programs.front(), layout, model)),
      network_(model, sim::links_of(programs_)),
      nodes_(programs_.size()) {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    EventLog* log = logs == nullptr ? nullptr : &(*logs)[node].log;
    if (node != absent) start(loaded, node, run, layout, log);
    machines_.push_back(nodes_[node].machine.get());
  }
}

void Simulation::start(const LoadedSchedule& loaded, std::uint32_t number,
                       const reference::Case& run, const Layout& layout, EventLog* log) {
  Node& node = nodes_[number];
  MachineConfig config;
  config.log = log;
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
  Status status = node.machine->init(network_.endpoint(number), config);
  if (status == Status::kOk) {
    status = node.machine->start(program, buffers, run.op, reference::count(run));
  }
  if (status == Status::kOk) return;
  negative(loaded.topology->node_name(number) + " cannot start: " + status_name(status));
}

Outcome Simulation::finish(const reference::Case& run, bool lock_step) {
  Outcome outcome;
  if (lock_step) {
    outcome.run = sim::run_lock_step(network_, machines_, latency_ticks(*programs_.front()));
    // There a step ends when its blocks are in. A tick lasts as long as any other.
    if (tick_ > 0) outcome.run.seconds = static_cast<double>(outcome.run.steps) * tick_;
  } else {
    network_.begin_residence(programs_.front()->latency_ticks);
    outcome.run = sim::run(network_, machines_);
  }
  outcome.links = network_.traffic();
  outcome.contention = network_.contention();
  outcome.residence = network_.residence();
  reference::Results results(run, 0);
  for (std::uint32_t rank = 0; rank < run.ranks && outcome.wrong.empty(); ++rank) {
    if (reference::result_bytes(run, rank) == 0) continue;
    if (nodes_[rank].output != results.of(rank)) {
      outcome.wrong = "wrong result on rank " + std::to_string(rank);
    }
  }
  return outcome;
}

std::int64_t Simulation::first_to_end(std::uint64_t until_ns) {
  do {
    for (std::uint32_t node = 0; node < machines_.size(); ++node) {
      if (machines_[node] != nullptr && machines_[node]->poll() == Status::kOk) return node;
    }
  } while (network_.advance(until_ns));
  return -1;
}

std::string check_barrier(const LoadedSchedule& loaded, const reference::Case& run,
                          const Layout& layout, const sim::Model& model) {
  constexpr std::uint64_t kLong = 500'000'000;  // ns, before any machine gives a link up
  for (std::uint32_t absent = 0; run.ranks > 1 && absent < run.ranks; ++absent) {
    const std::int64_t node =
        Simulation(loaded, run, layout, model, nullptr, absent).first_to_end(kLong);
    if (node >= 0) {
      return "rank " + std::to_string(node) + " ends the barrier while rank " +
             std::to_string(absent) + " has not begun it";
    }
  }
  return "";
}

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

sim::Model model_of(const LoadedSchedule& loaded, const Layout& layout,
                    const CostModel::Line& line) {
  const Program& program = loaded.programs.front();
  sim::Model model;
  model.alpha = line.alpha;
  model.beta = line.beta;
  // Else a port is a link's own, or only sends have one.
  model.one_port = program.port_model == espalier_PortModel_ONE_PORT_DUPLEX ||
                   program.port_model == espalier_PortModel_SIMPLEX;
  const topology::Topology* topology = loaded.topology.get();
  model.lanes = [topology](std::uint32_t from, std::uint32_t to) {
    return topology->capacity(from, to);
  };
  model.route = [topology](std::uint32_t from, std::uint32_t to) {
    return topology->route(from, to);
  };
  model.send_ticks = program.send_ticks;
  // A block leaves its port after S ticks and is in after L.
  const std::uint32_t send = send_ticks(program);
  model.latency =
      block_seconds(layout, line.alpha, line.beta) * (latency_ticks(program) - send) / send;
  return model;
}

}  // namespace espalier::tools

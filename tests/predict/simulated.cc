#include "tests/predict/simulated.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "collectives/schedule/program_store.h"
#include "collectives/simulation/address_range.h"
#include "collectives/simulation/cluster.h"

namespace espalier::testing {
namespace {

sim::Model network_model(const topology::Topology& topology, const Program& program,
                         const Layout& layout, const LineCost& cost, Switching switching) {
  sim::Model model{.alpha = cost.alpha, .beta = cost.beta};
  model.one_port =
      program.port_model == PortModel::kOnePortDuplex || program.port_model == PortModel::kSimplex;
  model.lanes = [&topology](std::uint32_t from, std::uint32_t to) {
    return topology.capacity(from, to);
  };
  model.route = [&topology](std::uint32_t from, std::uint32_t to) {
    return topology.route(from, to);
  };
  model.switching = switching;
  model.no_data = true;
  model.send_ticks = program.send_ticks;
  const std::uint32_t send = std::max(1u, program.send_ticks);
  const std::uint32_t latency = std::max(1u, program.latency_ticks);
  model.latency =
      (cost.alpha + cost.beta * static_cast<double>(slot_bytes(layout))) * (latency - send) / send;
  return model;
}

}  // namespace

predict::Picoseconds simulated(const topology::Topology& topology, const Programs& programs,
                               const Operator& op, std::uint64_t count, const LineCost& cost,
                               Switching switching) {
  const auto nodes = static_cast<std::uint32_t>(programs.size());
  ProgramStore store;
  sim::LinkCollector links;
  Layout layout;
  std::uint64_t room = 0;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    store.add(programs[node]);
    links.add(node, programs[node]);
    if (make_layout(programs[node], count, std::max(1u, element_bytes(op)), layout) !=
        Status::kOk) {
      throw std::runtime_error("no layout");
    }
    room = std::max(room, sim::AddressRange::bytes_for(programs[node], layout));
  }
  const sim::AddressRange addresses(room);
  sim::Cluster::Options options;
  options.config.no_data = true;
  options.config.deadline_ns = 1'000'000'000'000;  // a message of seconds is no silence
  sim::Cluster cluster(sim::Network(network_model(topology, programs[0], layout, cost, switching),
                                    links.links(nodes)),
                       store, options);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Status status =
        cluster.start(node, programs[node], addresses.buffers(programs[node], layout), op, count);
    if (status != Status::kOk) throw std::runtime_error(status_name(status));
  }
  const sim::RunResult result = cluster.run();
  if (result.status != Status::kOk) {
    throw std::runtime_error(std::string(status_name(result.status)) + " " + result.message);
  }
  return static_cast<predict::Picoseconds>(std::llround(result.seconds * 1e12));
}

}  // namespace espalier::testing

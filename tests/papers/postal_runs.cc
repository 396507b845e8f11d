#include "tests/papers/postal_runs.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/simulation/cluster.h"
#include "collectives/simulation/node_memory.h"
#include "espalier/collectives/embed/place.h"

namespace espalier::papers {
namespace {

constexpr double kUnit = 1e-3;  // s of virtual time

void check(Status status, const char* what) {
  if (status != Status::kOk)
    throw std::runtime_error(std::string(what) + ": " + status_name(status));
}

sim::Model model_of(const PostalNetwork& network) {
  sim::Model model{.alpha = network.send * kUnit, .beta = 0, .latency = network.latency * kUnit};
  if (network.links == nullptr) return model;
  model.lanes = [network](std::uint32_t from, std::uint32_t to) {
    return network.lanes * network.links->capacity(from, to);
  };
  model.route = [links = network.links](std::uint32_t from, std::uint32_t to) {
    return links->route(from, to);
  };
  return model;
}

Programs experiment(tools::Experiment which, std::uint32_t receivers) {
  Programs programs(receivers + 1);
  for (std::uint32_t rank = 0; rank <= receivers; ++rank) {
    check(tools::experiment_program(which, receivers, rank, 1, programs[rank]), "experiment");
  }
  return programs;
}

}  // namespace

double simulated_time(const Programs& programs, const PostalNetwork& network) {
  std::vector<const Program*> all;
  for (const Program& program : programs) all.push_back(&program);
  sim::Cluster::Options options;
  options.config.deadline_ns = 1'000'000'000'000;  // a message of milliseconds is no silence
  sim::Cluster cluster(sim::Network(model_of(network), sim::links_of(all)), options);
  Operator op;
  if (programs.front().collective == Collective::kAllreduce)
    op = {.op = Op::kSum, .type = Type::kU8};
  std::vector<sim::NodeMemory> memory(programs.size());
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    Layout layout;
    check(make_layout(programs[node], 1, 1, layout), "layout");
    memory[node].allocate(programs[node], layout);
    check(cluster.start(node, programs[node], memory[node].buffers(), op, 1), "start");
  }
  const sim::RunResult result = cluster.run();
  check(result.status, result.message.c_str());
  return result.seconds / kUnit;
}

Programs placed_programs(Collective collective, const char* algorithm,
                         const CollectiveParameters& parameters,
                         const std::vector<std::uint32_t>& node_of) {
  Programs programs = must_generate(collective, algorithm, parameters);
  if (!node_of.empty()) check(embed::place_all(node_of, programs), "placing");
  return programs;
}

tools::Postal measured_postal(const PostalNetwork& network) {
  std::vector<tools::Timing> timings;
  for (const tools::Experiment which : tools::kExperiments) {
    for (std::uint32_t receivers = 1; receivers <= tools::kMaxReceivers; receivers *= 2) {
      timings.push_back(
          {which, receivers, simulated_time(experiment(which, receivers), network) * kUnit});
    }
  }
  return tools::fit_postal(timings);
}

double measured_send(const PostalNetwork& network, std::uint32_t window) {
  const auto time = [&](std::uint32_t receivers) {
    Programs programs = experiment(tools::Experiment::kReturn, receivers);
    for (Program& program : programs) program.window = std::min(program.window, window);
    return simulated_time(programs, network);
  };
  // T = 2 t_0 (k - 1 + lambda).
  constexpr std::uint32_t k = tools::kMaxReceivers;
  return (time(k) - time(1)) / (2 * (k - 1));
}

}  // namespace espalier::papers

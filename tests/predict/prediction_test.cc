// Predictions against simulation: every algorithm, on every family of topologies, with both kinds
// of switching, from sizes of one block to hundreds. Prints the distribution of the errors.
// ESPALIER_WHOLE=1: more topologies.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/testing/results.h"
#include "collectives/algorithms/testing/generate_all.h"
#include "collectives/algorithms/testing/parameters.h"
#include "collectives/predict/predict.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/search.h"
#include "planner/make/shape.h"
#include "tests/predict/simulated.h"
#include "tests/whole.h"

namespace espalier::predict {
namespace {

// The bounds that this test asserts, and docs/choosing.md states: permille of the simulated time.
constexpr std::int64_t kMaxError = 300, kMaxMedian = 1, kMaxNinetyNinth = 50;

struct PredictionCase {
  std::string name;
  const topology::Topology& topology;
  Programs programs;
};

struct Errors {
  std::vector<std::int64_t> permille;  // predicted - simulated, of simulated
  std::int64_t worst = 0;
  std::string worst_name;

  void add(const std::string& name, Picoseconds predicted, Picoseconds simulated) {
    const std::int64_t error =
        (static_cast<std::int64_t>(predicted) - static_cast<std::int64_t>(simulated)) * 1000 /
        static_cast<std::int64_t>(simulated);
    permille.push_back(error);
    if (std::abs(error) <= std::abs(worst)) return;
    worst = error;
    worst_name = name;
  }
  void merge(const Errors& other) {
    permille.insert(permille.end(), other.permille.begin(), other.permille.end());
    if (std::abs(other.worst) <= std::abs(worst)) return;
    worst = other.worst;
    worst_name = other.worst_name;
  }
  [[nodiscard]] std::int64_t at(std::size_t percent) {  // of the absolute errors
    std::vector<std::int64_t> sorted;
    for (const std::int64_t error : permille) sorted.push_back(std::abs(error));
    std::sort(sorted.begin(), sorted.end());
    return sorted[std::min(sorted.size() - 1, sorted.size() * percent / 100)];
  }
};

Operator operator_of(Collective collective) {
  const bool combines = collective == Collective::kReduce || collective == Collective::kAllreduce ||
                        collective == Collective::kScan || collective == Collective::kExscan ||
                        collective == Collective::kReduceScatter;
  if (!combines) return {};
  return {.op = Op::kSum, .type = Type::kU8};
}

// Network latency is that of the schedule, as in `espalier simulate`.
Model model_for(const Program& program, const testing::LineCost& cost) {
  Model model = line_model(cost.alpha, cost.beta);
  const std::uint32_t send = std::max(1u, program.send_ticks);
  const std::uint32_t latency = std::max(1u, program.latency_ticks);
  for (LinkCost& link : model.links) link.lambda_permille = 1000 * latency / send;
  return model;
}

void compare(const PredictionCase& one, Errors& errors) {
  const Program& first = one.programs.front();
  const Operator op = operator_of(first.collective);
  for (const Switching switching : {Switching::kCutThrough, Switching::kStoreAndForward}) {
    for (const testing::LineCost& cost : {testing::LineCost{20e-6, 1e-9}, {1e-6, 1e-9}}) {
      for (const std::uint64_t bytes :
           {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{20'000}, std::uint64_t{600'000}}) {
        if ((first.collective == Collective::kBarrier) != (bytes == 0)) continue;
        Layout layout;
        ASSERT_EQ(make_layout(first, bytes, 1, layout), Status::kOk);
        if (instances(one.programs, layout.blocks) > 400'000) continue;  // long to simulate
        Conditions conditions{.switching = switching, .op = op};
        const Model model = model_for(first, cost);
        const Prediction found = predict(one.topology, one.programs, layout, model, conditions);
        EXPECT_FALSE(found.is_by_steps) << one.name;
        errors.add(one.name + ", " + std::to_string(bytes) + " bytes", found.time,
                   testing::simulated(one.topology, one.programs, op, bytes, cost, switching));
      }
    }
  }
}

CollectiveParameters parameters_for(const topology::Topology& topology,
                                    const topology::Shape& shape, std::uint32_t root) {
  CollectiveParameters parameters = topology_parameters(topology, root);
  set_shape(shape, parameters);
  return parameters;
}

// Calls `with` for every schedule that there is for the topology: routed, and lowered onto links.
template <typename With>
void each_schedule(const topology::Topology& topology, const With& with) {
  const topology::Shape shape = topology.shape();
  const auto both = [&](const char* name, Collective collective, Programs programs,
                        const CollectiveParameters& parameters) {
    const std::string title = std::string(collective_name(collective)) + " by " + name + " on " +
                              topology.title() + ", root " + std::to_string(parameters.root);
    lower::Report report;
    auto lowered = lower::lower(topology, parameters, PortModel::kMultiport, programs, report);
    with({title, topology, std::move(programs)});
    if (lowered && report.changed) with({title + ", hop by hop", topology, *std::move(lowered)});
  };
  for (const Algorithm& algorithm : algorithms()) {
    for (const std::uint32_t root : {0u, topology.ranks() / 2}) {
      if (root != 0 && !has_root(algorithm.collective)) continue;
      CollectiveParameters parameters = parameters_for(topology, shape, root);
      if (!runs_on(algorithm, parameters)) continue;
      if (algorithm.takes_lambda && root != 0) parameters.latency_ticks = 2;
      Programs programs;
      if (generate_all(algorithm, parameters, programs) != Status::kOk) continue;
      both(algorithm.name, algorithm.collective, std::move(programs), parameters);
    }
  }
  for (const searched::SearchedAlgorithm& algorithm : searched::searched_algorithms()) {
    if (!algorithm.applies(topology)) continue;
    const CollectiveParameters parameters = parameters_for(topology, shape, 0);
    auto found = algorithm.search(topology, parameters);
    if (found) both(algorithm.name, algorithm.collective, *std::move(found), parameters);
  }
}

TEST(Prediction, AgreesWithSimulation) {
  std::vector<const char*> specs = {
      "complete:2",   "complete:8",     "mesh:3x4",  "fattree:k=2,h=3,c=1", "fattree:k=3x2,c=1",
      "crossbar:3x4", "crossbar:2x2x2", "hosts:3x2", "torus:2x4",           "dragonfly:2x2x1"};
  if (whole()) {
    specs.insert(specs.end(), {"complete:13", "mesh:5x7", "fattree:k=4,h=2,c=k", "mesh:2x2x2",
                               "ring:6", "hypercube:3", "hyperx:2x3", "torus:3x2x4"});
  }
  Errors all;
  for (const char* spec : specs) {
    const auto topology = or_throw(topology::parse(spec));
    Errors errors;
    each_schedule(*topology, [&](const PredictionCase& one) { compare(one, errors); });
    all.merge(errors);
    std::printf(
        "%-22s %5zu cases: half within %.1f %%, 90 %% within %.1f %%, all within %.1f %% (%s)\n",
        spec, errors.permille.size(), static_cast<double>(errors.at(50)) / 10,
        static_cast<double>(errors.at(90)) / 10, static_cast<double>(std::abs(errors.worst)) / 10,
        errors.worst_name.c_str());
  }
  EXPECT_LE(all.at(50), kMaxMedian);
  EXPECT_LE(all.at(99), kMaxNinetyNinth);
  EXPECT_LE(std::abs(all.worst), kMaxError) << all.worst_name;
}

}  // namespace
}  // namespace espalier::predict

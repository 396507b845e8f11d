#include "tests/mutation/schedules.h"

#include <cstdlib>
#include <iostream>

#include "collectives/algorithms/testing/generate_all.h"
#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/search.h"
#include "planner/make/shape.h"

namespace espalier::mutation {
namespace {

struct Choice {
  std::uint32_t run_length, send_ticks, latency_ticks;
  const char* name;
  std::uint32_t radix = 0;
  std::uint32_t ratio_numerator = 0, ratio_denominator = 0;
};

// The algorithm's parameters that are worth trying.
std::vector<Choice> choices_of(const std::string& algorithm) {
  if (algorithm == "lambda-tree" || algorithm == "combine") {
    return {{0, 1, 1, ""}, {0, 1, 3, ", L = 3"}, {0, 2, 3, ", L = 3, S = 2"}};
  }
  if (algorithm == "alpha-table") return {{0, 1, 1, ""}, {0, 2, 3, ", L = 3, S = 2"}};
  if (algorithm == "alpha-tree") {
    return {{0, 1, 2, ", L = 2"}, {0, 2, 3, ", ratio 3/4, L = 3, S = 2", 0, 3, 4}};
  }
  if (algorithm == "knomial") {
    return {{0, 1, 1, ""}, {0, 1, 1, ", k = 3", 3}, {0, 2, 3, ", k = 4, L = 3, S = 2", 4}};
  }
  if (algorithm.find("fractional") == 0) return {{0, 1, 1, ""}, {3, 1, 1, ", r = 3"}};
  // The modules of small crossbars hold no longer runs.
  if (algorithm.find("crossbar") == 0) return {{0, 1, 1, ""}, {2, 1, 1, ", r = 2"}};
  return {{0, 1, 1, ""}};
}

[[noreturn]] void fail(const std::string& name, const std::string& why) {
  std::cerr << name << ": not generated: " << why << "\n";
  std::exit(1);
}

}  // namespace

CollectiveParameters parameters_of(const topology::Topology& topology, std::uint32_t root,
                                   std::uint32_t window) {
  // The parameters point into it.
  static thread_local topology::Shape shape;
  shape = topology.shape();
  CollectiveParameters parameters;
  parameters.ranks = topology.ranks();
  parameters.root = root;
  parameters.window = window;
  parameters.topology_digest = topology.digest();
  set_shape(shape, parameters);
  return parameters;
}

Programs programs_of(const Algorithm& algorithm, const CollectiveParameters& parameters) {
  if (!runs_on(algorithm, parameters)) return {};
  Programs programs;
  const Status status = generate_all(algorithm, parameters, programs);
  if (status == Status::kOk) return programs;
  // kTooLarge: the tables cannot hold the actions of a node.
  if (status != Status::kUnsupported && status != Status::kTooLarge) {
    fail(algorithm.name, status_name(status));
  }
  return {};
}

void for_schedules(const topology::Topology& topology, const std::set<std::uint32_t>& roots,
                   std::uint32_t window, const std::function<void(Made)>& use) {
  const auto each = [&](const char* name, Collective collective, const auto& make) {
    for (const std::uint32_t root : has_root(collective) ? roots : std::set<std::uint32_t>{0}) {
      for (const Choice& choice : choices_of(name)) {
        CollectiveParameters parameters = parameters_of(topology, root, window);
        parameters.run_length = choice.run_length;
        parameters.radix = choice.radix;
        parameters.ratio_numerator = choice.ratio_numerator;
        parameters.ratio_denominator = choice.ratio_denominator;
        parameters.send_ticks = choice.send_ticks;
        parameters.latency_ticks = choice.latency_ticks;
        Made made{.name = std::string(name) + " " + collective_name(collective) + ", " +
                          topology.spec() + ", root " + std::to_string(root) + choice.name,
                  .algorithm = name,
                  .collective = collective,
                  .programs = make(parameters)};
        if (!made.programs.empty()) use(std::move(made));
      }
    }
  };
  for (const Algorithm& one : algorithms()) {
    each(one.name, one.collective, [&](const CollectiveParameters& parameters) {
      return Programs(programs_of(one, parameters));
    });
  }
  for (const searched::SearchedAlgorithm& algorithm : searched::searched_algorithms()) {
    if (!algorithm.applies(topology)) continue;
    each(algorithm.name, algorithm.collective, [&](const CollectiveParameters& parameters) {
      return algorithm.search(topology, parameters).value_or(Programs());  // empty where it cannot
    });
  }
}

void for_lowered_schedules(const topology::Topology& topology, const std::set<std::uint32_t>& roots,
                           std::uint32_t window, const std::function<void(Made)>& use) {
  for_schedules(topology, roots, window, [&](Made routed) {
    if (lower::is_hop_by_hop(topology, routed.programs)) return;
    const CollectiveParameters parameters =
        parameters_of(topology, routed.programs.front().root, window);
    Made made;
    made.name = routed.name + ", lowered";
    made.algorithm = routed.algorithm;
    made.collective = routed.collective;
    lower::Report report;
    auto lowered =
        lower::lower(topology, parameters, PortModel::kMultiport, routed.programs, report);
    if (!lowered) fail(made.name, lowered.error().message);
    made.programs = *std::move(lowered);
    use(std::move(made));
  });
}

}  // namespace espalier::mutation

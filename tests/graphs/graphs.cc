// Prints the schedules of `packed-trees` on the graphs of graph_list.h, with the witnesses of their
// lower bounds, in lines of JSON: a topology, then its collectives. Every schedule is proven.

#include <cstdio>
#include <string>

#include "collectives/verify/bounds/lower_bounds.h"
#include "espalier/collectives/verify/verify.h"
#include "tests/graphs/graph_list.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/report/bound.h"
#include "tools/report/show_text.h"
#include "tools/report/witness.h"
#include "tools/select/selection.h"
#include "tools/select/verify_source.h"

namespace espalier::tools {
namespace {

void print_topology(const graphs::NamedGraph& graph, const topology::Topology& topology) {
  auto links = Json::array();
  for (const topology::Link& link : topology.links()) {
    links.push_back({{"from", link.from}, {"to", link.to}, {"capacity", link.capacity}});
  }
  const Json json = {
      {"topology", graph.name},    {"words", graph.words}, {"ranks", topology.ranks()},
      {"nodes", topology.nodes()}, {"columns", 0},         {"links", links}};
  std::printf("%s\n", json.dump().c_str());
}

void print_schedule(const graphs::NamedGraph& graph, Collective collective) {
  const Selection selection{.topology = graph.spec,
                            .collective = collective_name(collective),
                            .algorithm = "packed-trees"};
  Source source(select_algorithm(selection));
  const verify::Verdict verdict = verify::verify(
      source.topology(), [&](std::uint32_t node) -> const Program& { return source.program(node); },
      {});
  if (!verdict.valid) {
    negative(graph.name + ", " + collective_name(collective) + ": " +
             verdict.counterexample.message);
  }
  const Program& first = source.program(0);
  const Count& steps = first.counts[first.steps_ref];
  const Json json = {
      {"collective", collective_name(collective)},
      {"slot", verdict.slot},
      {"for_all", verdict.for_all},
      {"steps", count_text(steps)},
      {"steps_per_round", steps.c != 0 ? steps.c : steps.b},
      {"blocks_per_round", steps.c != 0 ? steps.e : 1},
      {"window", first.window},
      {"formula", bound_text(verdict.lower_bounds, first)},
      {"certificate", certificate_json(source.topology(), first, verdict.bound_facts,
                                       verdict.lower_bounds, verdict.bounds_limited)}};
  std::printf("%s\n", json.dump().c_str());
}

void print_list() {
  for (const graphs::NamedGraph& graph : graphs::graph_list()) {
    const Json json = {{"topology", graph.name},
                       {"nodes", parse_topology(graph.spec)->nodes()},
                       {"spec", graph.spec}};
    std::printf("%s\n", json.dump().c_str());
  }
}

void print_all(const std::string& only) {
  for (const graphs::NamedGraph& graph : graphs::graph_list()) {
    if (!only.empty() && graph.name != only) continue;
    const auto topology = parse_topology(graph.spec);
    print_topology(graph, *topology);
    for (const Collective collective :
         {Collective::kBroadcast, Collective::kReduce, Collective::kAllgather,
          Collective::kReduceScatter, Collective::kAllreduce}) {
      try {
        print_schedule(graph, collective);
      } catch (const Failure& failure) {
        if (failure.exit_status != kBadInput) throw;
        const Json json = {{"collective", collective_name(collective)}, {"refused", failure.line}};
        std::printf("%s\n", json.dump().c_str());
      }
    }
  }
}

}  // namespace
}  // namespace espalier::tools

// graphs [NAME]: all graphs, or one of them. graphs --list: their specifications only.
int main(int argc, char** argv) {
  using namespace espalier::tools;
  try {
    const std::string argument = argc > 1 ? argv[1] : "";
    argument == "--list" ? print_list() : print_all(argument);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.exit_status;
  }
  return 0;
}

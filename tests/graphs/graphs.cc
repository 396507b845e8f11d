// Prints the schedules of `packed-trees` and `packed-paths` on the graphs of graph_list.h, then
// those for short messages, with the witnesses of their lower bounds, in lines of JSON: a topology,
// then its collectives. Every schedule is proven.

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "collectives/search/packing/exchange_flow.h"
#include "collectives/verify/bounds/all_bounds.h"
#include "espalier/collectives/verify/verify.h"
#include "tests/graphs/graph_list.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/options/plan_options.h"
#include "tools/report/bound.h"
#include "tools/report/show_text.h"
#include "tools/report/verify_source.h"
#include "tools/report/witness.h"

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

// The bound of an all-to-all by lengths of links, with its witness.
Json lengths_json(const topology::Topology& topology) {
  const searched::PackingGraph graph = searched::packing_graph(topology);
  const searched::LinkLengths lengths = or_bad_input(searched::find_exchange_flow(graph)).lengths;
  auto links = Json::array();
  for (std::size_t link = 0; link < graph.links.size(); ++link) {
    if (lengths.by_link[link] == 0) continue;
    links.push_back({{"from", graph.links[link].from},
                     {"to", graph.links[link].to},
                     {"length", lengths.by_link[link]}});
  }
  return {{"a", 0},
          {"b", lengths.distances},
          {"d", lengths.lanes},
          {"witness", {{"kind", "lengths"}, {"links", links}}}};
}

// Whether the schedule takes the steps of one of the bounds for large N.
bool is_at_bound(const Count& steps, const std::vector<verify::LowerBound>& bounds) {
  const std::int64_t taken = steps.c != 0 ? steps.c : steps.b, blocks = steps.c != 0 ? steps.e : 1;
  return std::any_of(bounds.begin(), bounds.end(), [&](const verify::LowerBound& bound) {
    return bound.b * blocks >= taken * bound.d;
  });
}

// Proves a schedule, or ends the program.
verify::Verdict proven(const graphs::NamedGraph& graph, Source& source) {
  verify::Verdict verdict = verify::verify(
      source.topology(), [&](std::uint32_t node) -> const Program& { return source.program(node); },
      {});
  if (!verdict.valid) negative(graph.name + ": " + verdict.counterexample.message);
  return verdict;
}

PlanOptions selection_of(const graphs::NamedGraph& graph, Collective collective,
                         const char* algorithm) {
  return {
      .topology = graph.spec, .collective = collective_name(collective), .algorithm = algorithm};
}

// The schedules for one block. The schedule of an all-to-all is for long messages.
constexpr std::pair<Collective, const char*> kShort[] = {
    {Collective::kBroadcast, "breadth-first"}, {Collective::kReduce, "breadth-first"},
    {Collective::kAllreduce, "breadth-first"}, {Collective::kBarrier, "breadth-first"},
    {Collective::kAllgather, "time-expanded"}, {Collective::kReduceScatter, "time-expanded"}};

void print_short(const graphs::NamedGraph& graph, Collective collective, const char* algorithm) {
  Source source(make_schedule(selection_of(graph, collective, algorithm)));
  const verify::Verdict verdict = proven(graph, source);
  const Json json = {
      {"short", collective_name(collective)},
      {"slot", verdict.slot},
      {"for_all", verdict.for_all},
      {"steps_at_one", verdict.steps_at_one},
      {"certificate", certificate_json(source.topology(), source.program(0), verdict.bound_facts,
                                       verdict.lower_bounds, verdict.bounds_limited)}};
  std::printf("%s\n", json.dump().c_str());
}

void print_schedule(const graphs::NamedGraph& graph, Collective collective) {
  const bool exchanges = collective == Collective::kAllToAll;
  Source source(
      make_schedule(selection_of(graph, collective, exchanges ? "packed-paths" : "packed-trees")));
  const verify::Verdict verdict = proven(graph, source);
  const Program& first = source.program(0);
  const Count& steps = first.counts[first.steps_ref];
  Json certificate = certificate_json(source.topology(), first, verdict.bound_facts,
                                      verdict.lower_bounds, verdict.bounds_limited);
  if (exchanges && !is_at_bound(steps, verdict.lower_bounds)) {
    certificate["bounds"].push_back(lengths_json(source.topology()));
  }
  const Json json = {{"collective", collective_name(collective)},
                     {"slot", verdict.slot},
                     {"for_all", verdict.for_all},
                     {"steps_at_one", verdict.steps_at_one},
                     {"steps", count_text(steps)},
                     {"steps_per_round", steps.c != 0 ? steps.c : steps.b},
                     {"blocks_per_round", steps.c != 0 ? steps.e : 1},
                     {"window", first.window},
                     {"formula", bound_text(verdict.lower_bounds, first)},
                     {"certificate", certificate}};
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

// Prints the line with which an algorithm refuses the topology.
template <typename Print>
void or_refused(const char* collective, const Print& print) {
  try {
    print();
  } catch (const Failure& failure) {
    if (failure.exit_status != kBadInput) throw;
    const Json json = {{"collective", collective}, {"refused", failure.line}};
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
          Collective::kReduceScatter, Collective::kAllreduce, Collective::kAllToAll}) {
      or_refused(collective_name(collective), [&] { print_schedule(graph, collective); });
    }
    for (const auto& [collective, algorithm] : kShort) {
      or_refused(collective_name(collective),
                 [&, one = collective, by = algorithm] { print_short(graph, one, by); });
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

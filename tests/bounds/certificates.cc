// Prints lower bounds with their witnesses, in lines of JSON: a topology, then what is on it.
//
// * All algorithms on small topologies of each kind, routed and hop by hop, with each port model.
// * All collectives on more topologies, with each port model, for any schedule that is routed or
//   hop by hop, and keeps the capacities of links.

#include <cstdio>
#include <set>
#include <string>

#include "collectives/verify/bounds/all_bounds.h"
#include "espalier/collectives/verify/verify.h"
#include "planner/make/blocks.h"
#include "planner/make/bound.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/options/plan_options.h"
#include "tools/report/bound.h"
#include "tools/report/show_text.h"
#include "tools/report/verify_source.h"
#include "tools/report/witness.h"

namespace espalier::tools {
namespace {

constexpr std::int64_t kBlocks = 64;  // N of the comparison, or the next that a schedule can have

// Two triangles of ranks with a router between them.
constexpr char kTriangles[] =
    "custom: name: \"triangles\" ranks: 6 routers: 1 link { from: 0 to: 1 } link { from: 1 to: 2 } "
    "link { from: 0 to: 2 } link { from: 3 to: 4 } link { from: 4 to: 5 } link { from: 3 to: 5 } "
    "link { from: 2 to: 6 capacity: 2 } link { from: 6 to: 3 capacity: 2 }";
// A square whose routes load some links more than others.
constexpr char kSquare[] =
    "custom: name: \"square\" ranks: 4 link { from: 0 to: 1 } link { from: 1 to: 2 } "
    "link { from: 2 to: 3 } link { from: 3 to: 0 }";
// Two triangles of wide links, joined by two narrow ones.
constexpr char kClusters[] =
    "custom: name: \"clusters\" ranks: 6 link { from: 0 to: 1 capacity: 2 } "
    "link { from: 1 to: 2 capacity: 2 } link { from: 2 to: 0 capacity: 2 } "
    "link { from: 3 to: 4 capacity: 2 } link { from: 4 to: 5 capacity: 2 } "
    "link { from: 5 to: 3 capacity: 2 } link { from: 0 to: 3 } link { from: 1 to: 4 }";
constexpr const char* kTopologies[] = {"complete:1",
                                       "complete:2",
                                       "complete:6",
                                       "complete:9",
                                       "mesh:1x5",
                                       "mesh:2x4",
                                       "mesh:3x3",
                                       "mesh:2x2x2",
                                       "torus:3x3",
                                       "ring:6",
                                       "hypercube:3",
                                       "hyperx:2x3",
                                       "dragonfly:3x2x1",
                                       "crossbar:2x4",
                                       "hosts:3x2",
                                       "fattree:k=3,h=2,c=1",
                                       "fattree:k=3,h=2,c=k",
                                       "fattree:k=2,h=3,c=1",
                                       "fattree:k=2,h=3,c=k",
                                       kTriangles,
                                       kSquare,
                                       kClusters};

constexpr const char* kMoreTopologies[] = {
    "complete:16",         "mesh:4x4", "mesh:5x7", "crossbar:4x4", "fattree:k=4,h=2,c=1",
    "fattree:k=3,h=3,c=1", kTriangles, kSquare,    kClusters};

// Values of --links and --ports; empty: option not given.
struct Way {
  const char* links;
  const char* ports;
};
constexpr Way kWays[] = {{"", ""},
                         {"hop-by-hop", ""},
                         {"hop-by-hop", "multiport"},
                         {"hop-by-hop", "single-send"},
                         {"routed", "single-send"},
                         {"routed", "multiport"}};

void print_topology(const topology::Topology& topology) {
  auto links = Json::array();
  for (const topology::Link& link : topology.links()) {
    links.push_back({{"from", link.from}, {"to", link.to}, {"capacity", link.capacity}});
  }
  const Json json = {{"topology", topology.title()},
                     {"ranks", topology.ranks()},
                     {"nodes", topology.nodes()},
                     {"columns", topology.shape().columns},
                     {"links", links}};
  std::printf("%s\n", json.dump().c_str());
}

void print_schedule(const PlanOptions& selection) {
  Source source(make_schedule(selection));
  const auto program = [&source](std::uint32_t node) -> const Program& {
    return source.program(node);
  };
  verify::VerifyOptions options;
  verify::Verdict verdict = verify::verify(source.topology(), program, options);
  if (!verdict.valid && verdict.counterexample.property == verify::Property::kLinks) {
    options.links = false;
    verdict = verify::verify(source.topology(), program, options);
  }
  if (!verdict.valid) negative(source.name() + ": " + verdict.counterexample.message);
  const Program& first = source.program(0);
  const std::int64_t blocks =
      planner::allowed_blocks(first, planner::cuts_messages(first) ? kBlocks : 1);
  const Json json = {
      {"algorithm", source.name()},
      {"links", selection.links == "hop-by-hop" || verdict.bound_facts.neighbours ? "hop by hop"
                : options.links                                                   ? "routed"
                                : "routed, any links"},
      {"blocks", blocks},
      {"steps", count_value(first.counts[first.steps_ref], blocks)},
      {"bound", planner::bound_steps(verdict.lower_bounds, first, blocks)},
      {"formula", bound_text(verdict.lower_bounds, first)},
      {"certificate", certificate_json(source.topology(), first, verdict.bound_facts,
                                       verdict.lower_bounds, verdict.bounds_limited)}};
  std::printf("%s\n", json.dump().c_str());
}

// Prints the schedule, unless the selection is refused.
void print_if_any(const PlanOptions& selection) {
  try {
    print_schedule(selection);
  } catch (const Failure& failure) {
    if (failure.exit_status != kBadInput) throw;
  }
}

void print_all(const std::string& spec) {
  const auto topology = parse_topology(spec);
  print_topology(*topology);
  for (const planner::AlgorithmEntry& entry : planner::algorithm_entries()) {
    std::set<std::uint32_t> roots = {0};
    if (has_root(entry.collective)) roots.insert(topology->ranks() - 1);
    for (const std::uint32_t root : roots) {
      for (const Way& way : kWays) {
        PlanOptions selection{.topology = spec,
                              .collective = collective_name(entry.collective),
                              .algorithm = entry.name,
                              .root = std::to_string(root)};
        selection.links = way.links;
        selection.ports = way.ports;
        for (const std::string& parameter : entry.parameters) {
          if (parameter == "--run-length") selection.run_length = "2";
          if (parameter == "--radix") selection.radix = "3";
          if (parameter == "--lambda") selection.lambda = "3/2";
          if (parameter == "--ratio") selection.ratio = "2/3";
        }
        print_if_any(selection);
      }
    }
  }
}

// Prints the bounds of any schedule of the collective. In an all-to-all no rank passes data on.
void print_bounds(const topology::Topology& topology, Collective collective, PortModel model,
                  bool neighbours) {
  Program common{};
  common.collective = collective;
  common.ranks = topology.ranks();
  common.nodes = neighbours ? topology.nodes() : 0;
  common.segments = counts_per_rank(collective) ? common.ranks : 1;
  common.port_model = model;
  common.blocks_count = 1;
  common.blocks[0].block_bytes = collective == Collective::kBarrier ? 0 : 8;
  const verify::BoundFacts facts{true, neighbours, !neighbours, 1};
  const verify::KnownBounds known = verify::all_bounds(topology, common, facts);
  const Json json = {
      {"links", neighbours ? "hop by hop" : "routed"},
      {"formula", bound_text(known.all, common)},
      {"certificate", certificate_json(topology, common, facts, known.all, known.limited)}};
  std::printf("%s\n", json.dump().c_str());
}

void print_all_bounds(const char* spec) {
  const auto topology = parse_topology(spec);
  print_topology(*topology);
  const bool complete = topology->link_count() == topology->ranks() * (topology->ranks() - 1);
  for (int collective = 1; collective <= _espalier_Collective_MAX; ++collective) {
    for (const bool neighbours : {false, true}) {
      if (complete && !neighbours) continue;
      for (const PortModel model : {PortModel::kOnePortDuplex, PortModel::kSimplex,
                                    PortModel::kSingleSend, PortModel::kMultiport}) {
        print_bounds(*topology, static_cast<Collective>(collective), model, neighbours);
      }
    }
  }
}

}  // namespace
}  // namespace espalier::tools

int main() {
  using namespace espalier::tools;
  try {
    for (const char* spec : kTopologies) print_all(spec);
    for (const char* spec : kMoreTopologies) print_all_bounds(spec);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.exit_status;
  }
  return 0;
}

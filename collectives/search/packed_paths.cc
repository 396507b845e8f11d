// `packed-paths`: all-to-all on any graph, by paths that together use its links as well as any
// schedule can. Nodes exchange messages with neighbours only; ranks and routers pass blocks on.
//
// A linear program finds the flow in which the busiest link takes the least time, where every rank
// sends one unit to every other (exchange_flow.h). The flow is rounded to paths: every pair of
// ranks has k of them, and each link is in at most T per lane (path_packing.h). T / k is not below
// the optimum of the program for any schedule.
//
// A round takes T steps and sends one block over each path. A hop takes the first step, modulo T,
// in which its link has a lane left after its block came (lower/hops.h: no queue). So N blocks take
// d + T ceil(N / k) steps, where d < T * (links of the longest path).
// Cost: steps * (alpha + beta * m / N), where m is the bytes of one rank's part for one other.
//
// Room. A block waits in scratch in every node between the ends of its path. If programs have no
// room for waits of all lengths below the window, blocks wait longer, and then the window is
// smaller.

#include <map>
#include <string>
#include <utility>

#include "collectives/lower/hops.h"
#include "collectives/search/fitting.h"
#include "collectives/search/packing/exchange_flow.h"
#include "collectives/search/packing/packing_graph.h"
#include "collectives/search/packing/path_packing.h"
#include "collectives/search/searches.h"
#include "collectives/search/streams.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::searched {
namespace {

// A task for each path, with a hop for each of its links, and copies of what ranks keep.
lower::HopGraph hops_of(const PackingGraph& graph, const PathPacking& packing) {
  lower::HopGraph hops;
  hops.blocks = static_cast<std::int32_t>(packing.rate.blocks);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> ports;
  for (const PackingLink& link : graph.links) {
    ports.emplace(std::pair(link.from, link.to), as_int(hops.ports.size()));
    hops.ports.push_back({link.from, link.to, static_cast<std::int32_t>(link.lanes), 0});
  }
  const auto add_task = [&](ActionKind kind, std::uint32_t from, std::uint32_t to,
                            std::int32_t block) {
    hops.first.push_back(as_int(hops.all.size()));
    hops.tasks.push_back({kind, from, to, block, as_int(from), true, {-1, as_int(to)}, {}, 0});
    return as_int(hops.tasks.size()) - 1;
  };
  for (std::uint32_t rank = 0; rank < graph.ranks; ++rank) {
    for (std::int32_t block = 0; block < hops.blocks; ++block) {
      const std::int32_t task = add_task(ActionKind::kCopy, rank, rank, block);
      hops.all.push_back({rank, rank, task, -1, -1, -1, -1});
    }
  }
  for (const PackedPath& path : packing.paths) {
    const std::int32_t task =
        add_task(ActionKind::kSend, path.origin, path.target, as_int(path.number));
    for (std::size_t hop = 1; hop < path.nodes.size(); ++hop) {
      const std::int32_t port = ports.at({path.nodes[hop - 1], path.nodes[hop]});
      ++hops.ports[as_index(port)].load;
      const std::int32_t before = hop == 1 ? -1 : as_int(hops.all.size()) - 1;
      hops.all.push_back({path.nodes[hop - 1], path.nodes[hop], task, before, -1, port, -1});
    }
  }
  return hops;
}

Result<Programs> write_paths(const topology::Topology& topology,
                             const CollectiveParameters& parameters, const Outline& outline,
                             const PackingGraph& graph, const PathPacking& packing) {
  const auto make = [&](const lower::Waits&) { return hops_of(graph, packing); };
  return write_what_fits(topology, parameters, outline, graph, {make});
}

Result<Programs> find_programs(const topology::Topology& topology,
                               const CollectiveParameters& parameters) {
  if (!can_pack_all_roots(topology)) {
    return fail("expected at most " + std::to_string(kMaxPackedRoots) + " nodes, and at most " +
                std::to_string(kMaxPackedLinks) + " links per node");
  }
  const Outline outline{.collective = Collective::kAllToAll,
                        .algorithm = "packed-paths",
                        .nodes = topology.nodes() > topology.ranks() ? topology.nodes() : 0,
                        .port_model = PortModel::kMultiport,
                        .contention = ContentionGuarantee::kSlot};
  if (topology.nodes() == 1) return write_alone(parameters, outline);
  const PackingGraph graph = packing_graph(topology);
  if (graph.ranks == 1) return write_paths(topology, parameters, outline, graph, {});
  const auto flow = find_exchange_flow(graph);
  if (!flow) return fail(flow.error());
  return write_paths(topology, parameters, outline, graph, pack_paths(graph, *flow));
}

Result<Programs> packed_paths_all_to_all(Collective, const topology::Topology& topology,
                                         const CollectiveParameters& parameters) {
  if (auto known = check_parameters(topology, parameters); !known) return fail(known.error());
  auto programs = find_programs(topology, parameters);
  if (programs) return programs;
  return fail("packed-paths on " + topology.title() + ": " + programs.error().message);
}

}  // namespace

const SearchedAlgorithm kPackedPathsRows[] = {
    row("packed-paths", Collective::kAllToAll, packed_paths_all_to_all,
        "k paths per pair from a multi-commodity flow: d+T*ceil(N/k) steps, T/k near the least of "
        "any",
        {.topologies = "at most 64 nodes of 16 links",
         .applies = can_pack_all_roots,
         .own_links = true,
         .missing = missing_flow_solver}),
};

}  // namespace espalier::searched

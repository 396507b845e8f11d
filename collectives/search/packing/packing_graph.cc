#include "collectives/search/packing/packing_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "espalier/internal/base/step_limits.h"

namespace espalier::searched {

PackingGraph packing_graph(const topology::Topology& topology) {
  PackingGraph graph{topology.ranks(), topology.nodes(), {}};
  const bool routers = topology.nodes() > topology.ranks();
  std::vector<std::size_t> links(topology.nodes(), 0);
  for (const topology::Link& link : topology.links()) ++links[link.from];
  for (const topology::Link& link : topology.links()) {
    // A message to a neighbour takes the route that the topology defines for it.
    if (topology.route(link.from, link.to).size() != 2) continue;
    if (routers && topology.capacity(link.to, link.from) == 0) continue;
    const std::size_t most = std::max(links[link.from], links[link.to]);
    const auto counted = static_cast<std::uint32_t>(kMaxStepMessages / most);
    graph.links.push_back(
        {link.from, link.to, std::min({link.capacity, kMaxLinkMessages, counted})});
  }
  std::sort(graph.links.begin(), graph.links.end(), [](const auto& a, const auto& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  return graph;
}

bool is_two_way(const PackingGraph& graph) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> ends;
  for (const PackingLink& link : graph.links) ends.insert({link.from, link.to});
  return std::all_of(ends.begin(), ends.end(), [&](const auto& pair) {
    return ends.count({pair.second, pair.first}) > 0;
  });
}

PackingGraph reversed(PackingGraph graph) {
  for (PackingLink& link : graph.links) std::swap(link.from, link.to);
  return graph;
}

}  // namespace espalier::searched

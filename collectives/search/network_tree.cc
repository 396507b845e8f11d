#include "collectives/search/network_tree.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/counted.h"
#include "espalier/internal/base/assert.h"

namespace espalier::searched {
namespace {

constexpr std::uint32_t kUnreached = std::numeric_limits<std::uint32_t>::max();
// Links that are followed in the searches from all nodes: about a second.
constexpr std::uint64_t kMaxFollowed = 1u << 28;

using Neighbours = std::vector<std::vector<std::uint32_t>>;  // by node, ascending

Neighbours two_way_neighbours(const topology::Topology& topology) {
  Neighbours towards(topology.nodes()), both(topology.nodes());
  for (const topology::Link& link : topology.links()) towards[link.from].push_back(link.to);
  for (std::vector<std::uint32_t>& list : towards) std::sort(list.begin(), list.end());
  for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
    for (const std::uint32_t other : towards[node]) {
      const std::vector<std::uint32_t>& back = towards[other];
      if (std::binary_search(back.begin(), back.end(), node)) both[node].push_back(other);
    }
  }
  return both;
}

// The links from `root` to each node; `order` becomes the reached nodes, nearest first.
std::vector<std::uint32_t> distances_from(const Neighbours& neighbours, std::uint32_t root,
                                          std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> distances(neighbours.size(), kUnreached);
  distances[root] = 0;
  order.assign(1, root);
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const std::uint32_t other : neighbours[order[next]]) {
      if (distances[other] != kUnreached) continue;
      distances[other] = distances[order[next]] + 1;
      order.push_back(other);
    }
  }
  return distances;
}

std::uint32_t furthest_rank(const topology::Topology& topology,
                            const std::vector<std::uint32_t>& distances) {
  return *std::max_element(distances.begin(), distances.begin() + topology.ranks());
}

// Adds the ranks of `below` to those of `node`.
void add_ranks(NetworkTree::Node& node, const NetworkTree::Node& below) {
  node.first = node.ranks == 0 ? below.first : std::min(node.first, below.first);
  node.last = node.ranks == 0 ? below.last : std::max(node.last, below.last);
  node.ranks += below.ranks;
}

Result<NetworkTree> tree_over(const topology::Topology& topology, const Neighbours& neighbours,
                              std::uint32_t root) {
  std::vector<std::uint32_t> order;
  const std::vector<std::uint32_t> distances = distances_from(neighbours, root, order);
  NetworkTree tree{.root = root, .depth = furthest_rank(topology, distances)};
  if (tree.depth == kUnreached) {
    return fail(topology.title() + ": expected links in both directions between all ranks");
  }
  tree.nodes.resize(topology.nodes());
  for (std::size_t next = order.size(); next-- > 0;) {
    const std::uint32_t number = order[next];
    NetworkTree::Node& node = tree.nodes[number];
    if (number < topology.ranks()) add_ranks(node, {number, 0, 1, number, number, {}});
    node.depth = distances[number];
    node.parent = root;
    if (number == root || node.ranks == 0) continue;
    node.parent = *std::find_if(
        neighbours[number].begin(), neighbours[number].end(),
        [&](std::uint32_t other) { return distances[other] + 1 == distances[number]; });
    add_ranks(tree.nodes[node.parent], node);
    tree.nodes[node.parent].children.push_back(number);
  }
  for (NetworkTree::Node& node : tree.nodes) {
    std::sort(node.children.begin(), node.children.end(), [&](std::uint32_t a, std::uint32_t b) {
      return tree.nodes[a].first < tree.nodes[b].first;
    });
    if (node.ranks > 0 && node.last - node.first + 1 != node.ranks) tree.keeps_order = false;
  }
  return tree;
}

}  // namespace

Result<NetworkTree> tree_from(const topology::Topology& topology, std::uint32_t root) {
  ESPALIER_ASSERT(root < topology.nodes());
  return tree_over(topology, two_way_neighbours(topology), root);
}

Result<NetworkTree> tree_from_centre(const topology::Topology& topology) {
  if (topology.nodes() * topology.link_count() > kMaxFollowed) {
    return fail(topology.title() + ": " + counted(topology.nodes(), "node") + " and " +
                std::to_string(topology.link_count()) +
                " links are too many to search for the centre");
  }
  const Neighbours neighbours = two_way_neighbours(topology);
  std::uint32_t least = kUnreached;
  std::vector<std::uint32_t> centres, order;
  for (std::uint32_t node = 0; node < topology.nodes(); ++node) {
    const std::uint32_t furthest = furthest_rank(topology, distances_from(neighbours, node, order));
    if (furthest > least) continue;
    if (furthest < least) centres.clear();
    least = furthest;
    centres.push_back(node);
  }
  // Routers first.
  std::stable_partition(centres.begin(), centres.end(),
                        [&](std::uint32_t node) { return node >= topology.ranks(); });
  for (const std::uint32_t centre : centres) {
    auto tree = tree_over(topology, neighbours, centre);
    if (!tree || tree->keeps_order) return tree;
  }
  return tree_over(topology, neighbours, centres.front());
}

}  // namespace espalier::searched

#include "collectives/verify/bounds/tree.h"

#include <algorithm>
#include <functional>

namespace espalier::verify {

void Side::add(const Program& common, std::uint32_t node) {
  if (node < common.ranks) add(Side{1, node, node, node == common.root});
}

void Side::add(const Side& other) {
  if (other.ranks == 0) return;
  lowest = ranks == 0 ? other.lowest : std::min(lowest, other.lowest);
  highest = ranks == 0 ? other.highest : std::max(highest, other.highest);
  ranks += other.ranks;
  root = root || other.root;
}

std::optional<Tree> Tree::read(const topology::Topology& topology, const Program& common) {
  const std::uint32_t nodes = topology.nodes();
  if (topology.link_count() != 2 * (std::uint64_t{nodes} - 1)) return std::nullopt;
  Tree tree;
  tree.from_.resize(nodes);
  for (const topology::Link& link : topology.links()) {
    const std::uint32_t back = topology.capacity(link.to, link.from);
    if (back == 0) return std::nullopt;
    if (link.from > link.to) continue;
    tree.from_[link.from].push_back(static_cast<std::uint32_t>(tree.edges_.size()));
    tree.edges_.push_back({link.from, link.to, link.capacity, {}});
    tree.from_[link.to].push_back(static_cast<std::uint32_t>(tree.edges_.size()));
    tree.edges_.push_back({link.to, link.from, back, {}});
  }
  // From the leaves inwards: an edge after all edges that follow it.
  std::vector<std::uint32_t> open(tree.edges_.size()), order;
  for (std::uint32_t edge = 0; edge < tree.edges_.size(); ++edge) {
    open[edge] = static_cast<std::uint32_t>(tree.from_[tree.edges_[edge].to].size()) - 1;
    if (open[edge] == 0) order.push_back(edge);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    tree.fill(common, order[i]);
    for (const std::uint32_t back : tree.from_[tree.edges_[order[i]].from]) {
      if (back != order[i] && --open[back ^ 1] == 0) order.push_back(back ^ 1);
    }
  }
  if (order.size() != tree.edges_.size()) return std::nullopt;  // the topology has a cycle
  return tree;
}

void Tree::fill(const Program& common, std::uint32_t edge) {
  const std::uint32_t node = edges_[edge].to;
  Branch branch;
  branch.side.add(common, node);
  branch.ranks_at.assign(1, branch.side.ranks);
  std::vector<std::int64_t> spreads;
  for (const std::uint32_t on : from_[node]) {
    if (on == (edge ^ 1)) continue;
    const Branch& next = edges_[on].beyond;
    if (next.side.ranks == 0) continue;
    branch.side.add(next.side);
    if (next.side.root) branch.root_at = next.root_at + 1;
    branch.ranks_at.resize(std::max(branch.ranks_at.size(), next.ranks_at.size() + 1), 0);
    for (std::size_t hops = 0; hops < next.ranks_at.size(); ++hops) {
      branch.ranks_at[hops + 1] += next.ranks_at[hops];
    }
    spreads.push_back(next.spread);
  }
  std::sort(spreads.begin(), spreads.end(), std::greater<>());
  for (std::size_t turn = 0; turn < spreads.size(); ++turn) {
    const auto sent = static_cast<std::int64_t>(turn) + 1;
    branch.spread = std::max(branch.spread, sent + spreads[turn]);
  }
  branch.depth = static_cast<std::int64_t>(branch.ranks_at.size()) - 1;
  const auto nearest = std::find_if(branch.ranks_at.begin(), branch.ranks_at.end(),
                                    [](std::int64_t count) { return count > 0; });
  branch.nearest = nearest - branch.ranks_at.begin();
  edges_[edge].beyond = std::move(branch);
}

}  // namespace espalier::verify

#include "collectives/search/tree_hops.h"

#include <algorithm>

#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/assert.h"

namespace espalier::searched {

TreeHops::TreeHops(const PackingGraph& graph, std::int32_t blocks) : graph_(graph) {
  ESPALIER_ASSERT(blocks >= 1);
  hops_.blocks = blocks;
  for (const PackingLink& link : graph.links) {
    ports_.emplace(std::pair(link.from, link.to), as_int(hops_.ports.size()));
    hops_.ports.push_back({link.from, link.to, static_cast<std::int32_t>(link.lanes), 0});
  }
}

std::vector<std::int32_t> TreeHops::broadcast(const PackedTree& tree, std::int32_t block,
                                              std::int32_t segment, lower::TaskInput held,
                                              const std::vector<EdgeSteps>& steps) {
  std::vector<std::int32_t> first;
  std::map<std::uint32_t, lower::TaskInput> at = {{tree.root, held}};
  for (std::size_t number = 0; number < tree.edges.size(); ++number) {
    const PackedEdge& edge = tree.edges[number];
    lower::TaskInput value = at.at(edge.front());
    first.push_back(as_int(hops_.tasks.size()));
    for (std::size_t hop = 1; hop < edge.size(); ++hop) {
      const bool output = hop + 1 == edge.size() && edge[hop] < graph_.ranks;
      const std::int32_t step = steps.empty() ? -1 : steps[number][hop - 1];
      value = send(edge[hop - 1], edge[hop], block, segment, output, value, step);
      if (output) written_[{edge[hop], block}] = value.task;
    }
    at[edge.back()] = value;
  }
  return first;
}

lower::TaskInput TreeHops::reduce(const PackedTree& tree, std::int32_t block, std::int32_t segment,
                                  const std::vector<EdgeSteps>& steps) {
  std::map<std::uint32_t, lower::TaskInput> at;
  std::map<std::uint32_t, std::size_t> awaited;  // by node: its children
  std::vector<std::size_t> order(tree.edges.size());
  for (std::size_t edge = 0; edge < order.size(); ++edge) {
    order[edge] = edge;
    ++awaited[tree.edges[edge].front()];
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return steps[a].front() < steps[b].front();
  });
  for (std::uint32_t rank = 0; rank < graph_.ranks; ++rank) at[rank] = {-1, segment};
  for (const std::size_t number : order) {
    const PackedEdge& edge = tree.edges[number];
    lower::TaskInput value = at.at(edge.back());
    for (std::size_t hop = edge.size() - 1; hop > 0; --hop) {
      value = send(edge[hop], edge[hop - 1], block, segment, false, value, steps[number][hop - 1]);
    }
    const std::uint32_t to = edge.front();
    const bool whole = --awaited[to] == 0 && to == tree.root;
    const auto held = at.find(to);
    if (held != at.end()) value = combine(to, block, segment, whole, held->second, value);
    at[to] = value;
  }
  return at.at(tree.root);
}

lower::TaskInput TreeHops::copy(std::uint32_t rank, std::int32_t block, std::int32_t segment) {
  return add({ActionKind::kCopy, rank, rank, block, segment, true, {-1, segment}, {}, 0}, -1, -1);
}

void TreeHops::keep_in_place() {
  const std::size_t many = hops_.tasks.size();
  for (std::size_t task = 0; task < many; ++task) {
    const lower::Task& one = hops_.tasks[task];
    if (one.a.task >= 0 || one.a.segment < 0) continue;
    const auto written = written_.find({one.from, one.block});
    if (written != written_.end()) {
      hops_.orders.push_back({as_int(task), written->second, true, 0});
    }
  }
}

lower::TaskInput TreeHops::send(std::uint32_t from, std::uint32_t to, std::int32_t block,
                                std::int32_t segment, bool output, lower::TaskInput value,
                                std::int32_t step) {
  const std::int32_t port = ports_.at({from, to});
  ++hops_.ports[as_index(port)].load;
  return add({ActionKind::kSend, from, to, block, segment, output, value, {}, 0}, port, step);
}

lower::TaskInput TreeHops::combine(std::uint32_t node, std::int32_t block, std::int32_t segment,
                                   bool output, lower::TaskInput a, lower::TaskInput b) {
  return add({ActionKind::kCombine, node, node, block, segment, output, a, b, 0}, -1, -1);
}

lower::TaskInput TreeHops::add(const lower::Task& task, std::int32_t port, std::int32_t step) {
  const std::int32_t number = as_int(hops_.tasks.size());
  hops_.tasks.push_back(task);
  hops_.first.push_back(number);
  hops_.all.push_back({task.from, task.to, number, task.a.task, task.b.task, port, step});
  return {number, task.segment};
}

}  // namespace espalier::searched

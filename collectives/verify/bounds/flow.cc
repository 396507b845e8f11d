// Dinic's algorithm: the shortest augmenting paths, level graph by level graph.

#include "collectives/verify/bounds/flow.h"

#include <algorithm>

#include "espalier/internal/base/assert.h"

namespace espalier::verify {

void FlowNetwork::clear(std::uint32_t vertices) {
  arcs_.clear();
  arcs_from_.resize(vertices);
  for (std::vector<std::uint32_t>& arcs : arcs_from_) arcs.clear();
}

std::size_t FlowNetwork::add_arc(std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
  ESPALIER_ASSERT(capacity >= 0 && from < arcs_from_.size() && to < arcs_from_.size());
  const auto number = static_cast<std::uint32_t>(arcs_.size());
  arcs_from_[from].push_back(number);
  arcs_from_[to].push_back(number + 1);
  arcs_.push_back({to, capacity, capacity});
  arcs_.push_back({from, 0, 0});
  return number / 2;
}

bool FlowNetwork::find_levels(std::uint32_t source, std::uint32_t sink, std::int64_t& work) {
  level_.assign(arcs_from_.size(), -1);
  level_[source] = 0;
  queue_.assign(1, source);
  for (std::size_t i = 0; i < queue_.size() && level_[sink] < 0; ++i) {
    const std::uint32_t vertex = queue_[i];
    work -= static_cast<std::int64_t>(arcs_from_[vertex].size());
    for (const std::uint32_t arc : arcs_from_[vertex]) {
      const Arc& on = arcs_[arc];
      if (on.left == 0 || level_[on.to] >= 0) continue;
      level_[on.to] = level_[vertex] + 1;
      queue_.push_back(on.to);
    }
  }
  return level_[sink] >= 0;
}

// Follows the levels from the source to the sink. Returns what one path carries; 0: there is none.
std::int64_t FlowNetwork::push_along(std::uint32_t source, std::uint32_t sink, std::int64_t most,
                                     std::int64_t& work) {
  path_.clear();
  for (std::uint32_t vertex = source; vertex != sink;) {
    bool further = false;
    for (std::size_t& k = next_[vertex]; k < arcs_from_[vertex].size(); ++k) {
      --work;
      const std::uint32_t arc = arcs_from_[vertex][k];
      if (arcs_[arc].left == 0 || level_[arcs_[arc].to] != level_[vertex] + 1) continue;
      path_.push_back(arc);
      vertex = arcs_[arc].to;
      further = true;
      break;
    }
    if (further) continue;
    if (path_.empty()) return 0;
    vertex = arcs_[path_.back() ^ 1].to;
    path_.pop_back();
    ++next_[vertex];
  }
  for (const std::uint32_t arc : path_) most = std::min(most, arcs_[arc].left);
  for (const std::uint32_t arc : path_) {
    arcs_[arc].left -= most;
    arcs_[arc ^ 1].left += most;
  }
  return most;
}

std::int64_t FlowNetwork::max_flow(std::uint32_t source, std::uint32_t sink, std::int64_t enough,
                                   std::int64_t& work) {
  for (Arc& arc : arcs_) arc.left = arc.capacity;
  work -= static_cast<std::int64_t>(arcs_.size()) / 4;  // a copy takes less time than a look
  std::int64_t flow = 0;
  while (flow < enough && work >= 0 && find_levels(source, sink, work)) {
    next_.assign(arcs_from_.size(), 0);
    while (flow < enough && work >= 0) {
      const std::int64_t more = push_along(source, sink, enough - flow, work);
      if (more == 0) break;
      flow += more;
    }
  }
  return work < 0 ? -1 : flow;
}

}  // namespace espalier::verify

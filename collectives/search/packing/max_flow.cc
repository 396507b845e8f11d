#include "collectives/search/packing/max_flow.h"

#include <algorithm>

namespace espalier::searched {

void MaxFlow::clear(std::uint32_t vertices) {
  arcs_.clear();
  first_.assign(vertices, -1);
}

void MaxFlow::add_arc(std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
  const auto number = static_cast<std::int32_t>(arcs_.size());
  arcs_.push_back({to, first_[from], capacity});
  first_[from] = number;
  arcs_.push_back({from, first_[to], 0});
  first_[to] = number + 1;
}

bool MaxFlow::find_levels(std::uint32_t source, std::uint32_t sink) {
  level_.assign(first_.size(), -1);
  level_[source] = 0;
  queue_.assign(1, source);
  for (std::size_t i = 0; i < queue_.size() && level_[sink] < 0; ++i) {
    const std::uint32_t vertex = queue_[i];
    for (std::int32_t arc = first_[vertex]; arc >= 0;) {
      const Arc& on = arcs_[static_cast<std::size_t>(arc)];
      if (on.left > 0 && level_[on.to] < 0) {
        level_[on.to] = level_[vertex] + 1;
        queue_.push_back(on.to);
      }
      arc = on.next;
    }
  }
  return level_[sink] >= 0;
}

// Follows the levels from the source to the sink. Returns what one path carries; 0: there is none.
std::int64_t MaxFlow::push_along(std::uint32_t source, std::uint32_t sink, std::int64_t most) {
  path_.clear();
  for (std::uint32_t vertex = source; vertex != sink;) {
    std::int32_t& next = next_[vertex];
    while (next >= 0) {
      const Arc& on = arcs_[static_cast<std::size_t>(next)];
      if (on.left > 0 && level_[on.to] == level_[vertex] + 1) break;
      next = on.next;
    }
    if (next >= 0) {
      path_.push_back(next);
      vertex = arcs_[static_cast<std::size_t>(next)].to;
      continue;
    }
    if (path_.empty()) return 0;
    level_[vertex] = -2;  // leads nowhere
    vertex = arcs_[static_cast<std::size_t>(path_.back() ^ 1)].to;
    path_.pop_back();
  }
  for (const std::int32_t arc : path_) {
    most = std::min(most, arcs_[static_cast<std::size_t>(arc)].left);
  }
  for (const std::int32_t arc : path_) {
    arcs_[static_cast<std::size_t>(arc)].left -= most;
    arcs_[static_cast<std::size_t>(arc ^ 1)].left += most;
  }
  return most;
}

std::int64_t MaxFlow::max_flow(std::uint32_t source, std::uint32_t sink, std::int64_t enough) {
  if (source == sink) return enough;
  std::int64_t flow = 0;
  while (flow < enough && find_levels(source, sink)) {
    next_ = first_;
    while (flow < enough) {
      const std::int64_t more = push_along(source, sink, enough - flow);
      if (more == 0) break;
      flow += more;
    }
  }
  return flow;
}

}  // namespace espalier::searched

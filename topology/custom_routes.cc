#include "topology/custom_routes.h"

#include <algorithm>
#include <cmath>

namespace espalier::topology {

Result<void, ParseError> CustomRoutes::build(const CustomContent& content) {
  content_ = &content;
  count_ = content.nodes.size();
  next_.assign(count_ * count_, kNowhere);
  if (auto joined = all_joined(); !joined) return joined;
  if (content.xy) {
    fill_xy();
  } else {
    fill_shortest();
  }
  for (const CustomContent::NextHop& hop : content.hops) {
    next_[hop.to * count_ + hop.at] = static_cast<std::uint16_t>(hop.next);
  }
  for (std::uint32_t to = 0; to < count_; ++to) {
    if (auto arrives = follow(to); !arrives) return arrives;
  }
  return {};
}

bool CustomRoutes::reached(bool along, std::uint32_t& first) const {
  std::vector<std::vector<std::uint32_t>> on(count_);
  for (const Link& link : content_->links) {
    on[along ? link.from : link.to].push_back(along ? link.to : link.from);
  }
  std::vector<bool> seen(count_, false);
  std::vector<std::uint32_t> open = {0};
  seen[0] = true;
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    for (const std::uint32_t other : on[node]) {
      if (seen[other]) continue;
      seen[other] = true;
      open.push_back(other);
    }
  }
  first = static_cast<std::uint32_t>(std::find(seen.begin(), seen.end(), false) - seen.begin());
  return first == count_;
}

Result<void, ParseError> CustomRoutes::all_joined() const {
  std::uint32_t node = 0;
  for (const bool along : {true, false}) {
    if (reached(along, node)) continue;
    return fail(ParseError{content_->ranks_source,
                           content_->kind(along ? 0 : node) + " cannot reach " +
                               content_->kind(along ? node : 0) +
                               "; expected links by which every node reaches every other"});
  }
  return {};
}

// Searches breadth first from each destination, against the links. When a node is found, all its
// neighbours that are one link nearer are already known, and the lowest-numbered of them is taken.
void CustomRoutes::fill_shortest() {
  std::vector<std::vector<std::uint32_t>> before(count_);
  for (const Link& link : content_->links) before[link.to].push_back(link.from);
  for (std::uint32_t to = 0; to < count_; ++to) {
    std::vector<std::uint32_t> distance(count_, kNowhere), order = {to};
    distance[to] = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const std::uint32_t node : before[order[i]]) {
        std::uint16_t& next = next_[to * count_ + node];
        if (distance[node] == kNowhere) {
          distance[node] = distance[order[i]] + 1;
          order.push_back(node);
        } else if (distance[node] != distance[order[i]] + 1) {
          continue;
        }
        next = static_cast<std::uint16_t>(std::min<std::uint32_t>(next, order[i]));
      }
    }
  }
}

// Chooses the nearest neighbour in the destination's direction that is not beyond it: along the row
// until the column matches, then along the column. If there is none, the table keeps kNowhere.
void CustomRoutes::fill_xy() {
  const auto& nodes = content_->nodes;
  for (std::uint32_t node = 0; node < count_; ++node) {
    const Topology::Position from = nodes[node].position;
    for (std::uint32_t to = 0; to < count_; ++to) {
      const Topology::Position end = nodes[to].position;
      const bool row = from.x != end.x;
      const double wanted = row ? end.x - from.x : end.y - from.y;
      double nearest = 0;
      for (auto link = content_->first_link(node);
           link != content_->links.end() && link->from == node; ++link) {
        const Topology::Position there = nodes[link->to].position;
        if (row ? there.y != from.y : there.x != from.x) continue;
        const double step = row ? there.x - from.x : there.y - from.y;
        if (step * wanted <= 0 || std::abs(step) > std::abs(wanted)) continue;
        if (nearest != 0 && std::abs(step) >= nearest) continue;
        nearest = std::abs(step);
        next_[to * count_ + node] = static_cast<std::uint16_t>(link->to);
      }
    }
  }
}

Result<void, ParseError> CustomRoutes::follow(std::uint32_t to) const {
  // By node: the first node whose path passed here; `to`: the path arrives.
  std::vector<std::uint32_t> walk(count_, kNowhere);
  walk[to] = to;
  for (std::uint32_t from = 0; from < count_; ++from) {
    if (walk[from] != kNowhere || explicit_route(from, to) != nullptr) continue;
    std::vector<std::uint32_t> passed;
    std::uint32_t current = from;
    while (walk[current] == kNowhere) {
      walk[current] = from;
      passed.push_back(current);
      if (next(current, to) == kNowhere) return stops(from, current, to);
      current = next(current, to);
    }
    if (walk[current] == from && current != to &&
        std::find(passed.begin(), passed.end(), current) != passed.end())
      return loops(current, to);
    for (const std::uint32_t node : passed) walk[node] = to;
  }
  return {};
}

Result<void, ParseError> CustomRoutes::stops(std::uint32_t from, std::uint32_t node,
                                             std::uint32_t to) const {
  const bool row = content_->nodes[node].position.x != content_->nodes[to].position.x;
  return fail(ParseError{
      content_->routing_source,
      "the XY route from " + content_->kind(from) + " to " + content_->kind(to) + " ends at " +
          content_->kind(node) + ", which has no link along its " + (row ? "row" : "column") +
          " in that direction; expected a next_hop { at: " + std::to_string(node) +
          " to: " + std::to_string(to) + " next: ... } or a route around"});
}

// Describes a loop. Every loop contains a next_hop, because each step of the routings alone comes
// nearer.
Result<void, ParseError> CustomRoutes::loops(std::uint32_t first, std::uint32_t to) const {
  std::string way = std::to_string(first);
  SourcePosition source;
  std::uint32_t node = first;
  do {
    for (const CustomContent::NextHop& hop : content_->hops) {
      if (hop.at == node && hop.to == to) source = hop.source;
    }
    node = next(node, to);
    way += " -> " + std::to_string(node);
  } while (node != first);
  return fail(ParseError{source, "messages for " + content_->kind(to) + " circulate without end, " +
                                     way + "; expected a next_hop that leads to it"});
}

const CustomContent::Route* CustomRoutes::explicit_route(std::uint32_t from,
                                                         std::uint32_t to) const {
  const auto& routes = content_->routes;
  const auto found_at =
      std::lower_bound(routes.begin(), routes.end(), std::pair(from, to),
                       [](const CustomContent::Route& route, const auto& ends) {
                         return std::pair(route.nodes.front(), route.nodes.back()) < ends;
                       });
  const bool found =
      found_at != routes.end() && found_at->nodes.front() == from && found_at->nodes.back() == to;
  return found ? &*found_at : nullptr;
}

std::vector<std::uint32_t> CustomRoutes::route(std::uint32_t from, std::uint32_t to) const {
  if (const CustomContent::Route* given = explicit_route(from, to)) return given->nodes;
  std::vector<std::uint32_t> nodes = {from};
  while (nodes.back() != to) nodes.push_back(next(nodes.back(), to));
  return nodes;
}

}  // namespace espalier::topology

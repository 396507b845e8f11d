// Point 3. In lock step a link carries the transfers of one step; under drift, in the worst case,
// one of every pair of ranks whose route crosses it (those of one pair follow each other).

#include "collectives/verify/check.h"

namespace espalier::verify {

Links::Links(const topology::Topology& topology) : topology_(topology) {
  for (const topology::Link& link : topology.links()) {
    capacity_[key(link.from, link.to)] = link.capacity;
  }
}

const std::vector<std::uint64_t>& Links::route(std::uint32_t from, std::uint32_t to) {
  const auto [entry, fresh] = routes_.try_emplace(key(from, to));
  if (fresh) {
    const std::vector<std::uint32_t> nodes = topology_.route(from, to);
    for (std::size_t hop = 1; hop < nodes.size(); ++hop) {
      entry->second.push_back(key(nodes[hop - 1], nodes[hop]));
    }
  }
  return entry->second;
}

Finding Links::check(const Case& at, LinkLoad& busiest) {
  const bool drift = at.common->grade == espalier_Grade_ASYNC;
  std::unordered_map<std::uint64_t, bool> pairs;
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> loads(
      drift ? 1 : static_cast<std::size_t>(at.steps()));
  for (std::uint32_t node = 0; node < at.instances.size(); ++node) {
    for (const Instance& send : at.instances[node]) {
      if (send.kind != espalier_Kind_SEND) continue;
      const auto to = static_cast<std::uint32_t>(send.peer);
      if (drift && !pairs.try_emplace(key(node, to), true).second) continue;
      for (const std::uint64_t link : route(node, to)) {
        const std::uint32_t load = ++loads[drift ? 0 : static_cast<std::size_t>(send.step)][link];
        const std::uint32_t capacity = capacity_[link];
        const auto link_from = static_cast<std::uint32_t>(link >> 32);
        const auto link_to = static_cast<std::uint32_t>(link);
        if (std::uint64_t{load} * busiest.capacity > std::uint64_t{busiest.load} * capacity) {
          busiest = {link_from, link_to, load, capacity};
        }
        if (load <= capacity) continue;
        return found(Point::kLinks, at, node, &send,
                     "the link " + topology_.node_name(link_from) + " -> " +
                         topology_.node_name(link_to) + " on its route carries " +
                         std::to_string(load) + (drift ? " at once under drift" : " in the step") +
                         "; its capacity is " + std::to_string(capacity));
      }
    }
  }
  return std::nullopt;
}

}  // namespace espalier::verify

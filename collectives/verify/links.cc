// Point 3. In lock step a link carries the transfers of one step; under drift, in the worst case,
// one of every pair of ranks whose route crosses it (those of one pair follow each other).

#include <algorithm>

#include "collectives/verify/check.h"

namespace espalier::verify {

namespace {

std::uint64_t key(std::uint32_t from, std::uint32_t to) {
  return (static_cast<std::uint64_t>(from) << 32) | to;
}

// Raises `busiest` to this load, if it is the nearest to its capacity.
void raise(LinkLoad& busiest, std::uint64_t link, std::uint32_t load, std::uint32_t capacity) {
  if (std::uint64_t{load} * busiest.capacity > std::uint64_t{busiest.load} * capacity) {
    busiest = {static_cast<std::uint32_t>(link >> 32), static_cast<std::uint32_t>(link), load,
               capacity};
  }
}

std::string too_much(const topology::Topology& topology, const LinkLoad& link, bool drift) {
  return "the link " + topology.node_name(link.from) + " -> " + topology.node_name(link.to) +
         " on its route carries " + std::to_string(link.load) +
         (drift ? " at once under drift" : " in the step") + "; its capacity is " +
         std::to_string(link.capacity);
}

// The link that carries the most of its capacity, over all slots. Sorts `uses`.
LinkLoad busiest_of(const topology::Topology& topology, std::vector<LinkUse>& uses) {
  struct Hop {
    std::uint64_t link;
    std::int64_t slot;
    [[nodiscard]] auto operator<=>(const Hop&) const = default;
  };
  std::vector<Hop> hops;
  hops.reserve(uses.size());
  for (const LinkUse& use : uses) {
    const std::vector<std::uint32_t> nodes = topology.route(use.from, use.to);
    for (std::size_t hop = 1; hop < nodes.size(); ++hop) {
      hops.push_back({key(nodes[hop - 1], nodes[hop]), use.slot});
    }
  }
  std::sort(hops.begin(), hops.end());
  LinkLoad busiest;
  for (std::size_t begin = 0, end = 0; begin < hops.size(); begin = end) {
    while (end < hops.size() && hops[end] == hops[begin]) ++end;
    const auto from = static_cast<std::uint32_t>(hops[begin].link >> 32);
    const auto to = static_cast<std::uint32_t>(hops[begin].link);
    raise(busiest, hops[begin].link, static_cast<std::uint32_t>(end - begin),
          topology.capacity(from, to));
  }
  return busiest;
}

}  // namespace

Finding check_loads(const Case& at, const std::vector<LinkUse>& uses, Verdict& verdict) {
  std::vector<LinkUse> all = uses;
  const LinkLoad slot = busiest_of(*at.topology, all);
  // Under drift: one of every pair at once, whatever its step.
  const auto pair = [](const LinkUse& use) { return key(use.from, use.to); };
  std::sort(all.begin(), all.end(),
            [&](const LinkUse& a, const LinkUse& b) { return pair(a) < pair(b); });
  all.erase(std::unique(all.begin(), all.end(),
                        [&](const LinkUse& a, const LinkUse& b) { return pair(a) == pair(b); }),
            all.end());
  for (LinkUse& use : all) use.slot = 0;
  const LinkLoad drift = busiest_of(*at.topology, all);
  verdict.slot = slot.load <= slot.capacity;
  verdict.async = drift.load <= drift.capacity;
  const bool by_drift = at.common->grade == espalier_Grade_ASYNC;
  verdict.busiest = by_drift ? drift : slot;
  if (by_drift ? verdict.async : verdict.slot) return std::nullopt;
  Counterexample example =
      found(Point::kLinks, at, -1, nullptr, too_much(*at.topology, verdict.busiest, by_drift));
  example.from = verdict.busiest.from;
  example.to = verdict.busiest.to;
  return example;
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
        const LinkLoad now{static_cast<std::uint32_t>(link >> 32), static_cast<std::uint32_t>(link),
                           load,
                           topology_.capacity(static_cast<std::uint32_t>(link >> 32),
                                              static_cast<std::uint32_t>(link))};
        raise(busiest, link, load, now.capacity);
        if (load <= now.capacity) continue;
        return found(Point::kLinks, at, node, &send, too_much(topology_, now, drift));
      }
    }
  }
  return std::nullopt;
}

}  // namespace espalier::verify

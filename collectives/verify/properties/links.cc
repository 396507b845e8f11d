// In lock step a link carries the transfers of one step. Asynchronously, the worst case is this:
// every pair of nodes whose route crosses the link has the most transfers under way that the pair
// ever has in one step. Later transfers of the pair start only when these are over.

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/program_facts.h"

namespace espalier::verify {

namespace {

std::uint64_t key(std::uint32_t from, std::uint32_t to) {
  return (static_cast<std::uint64_t>(from) << 32) | to;
}

// The load of a link in one slot.
struct SlotLoad {
  LinkLoad link;
  std::int64_t slot = 0;

  [[nodiscard]] bool too_much() const { return link.load > link.capacity; }
};

bool is_nearer(const LinkLoad& a, const LinkLoad& b) {
  return std::uint64_t{a.load} * b.capacity > std::uint64_t{b.load} * a.capacity;
}

// Uses or hops that fit into the memory of one instance; they take less time than it.
constexpr std::int64_t kHopsAnInstance = 4;

std::size_t max_hops(const ExpandedSchedule& schedule) {
  const std::int64_t left =
      std::min(schedule.max_instances, schedule.max_instances_total - schedule.spent);
  return static_cast<std::size_t>(kHopsAnInstance * std::max<std::int64_t>(0, left));
}

Counterexample too_many_hops(const ExpandedSchedule& schedule) {
  return too_large(Property::kLinks, schedule, -1,
                   "the routes of all transfers have more hops than the " +
                       std::to_string(max_hops(schedule)) + " that can be checked");
}

// Counts the load of each link, one slot after the other.
class SlotLoads {
 public:
  explicit SlotLoads(const topology::Topology& topology) : topology_(topology) {}

  // Adds a message along its route. Returns the number of hops.
  std::size_t add(std::uint32_t from, std::uint32_t to) {
    const std::vector<std::uint32_t> nodes = topology_.route(from, to);
    for (std::size_t hop = 1; hop < nodes.size(); ++hop) {
      std::uint32_t& load = loads_[key(nodes[hop - 1], nodes[hop])];
      if (load++ == 0) touched_.push_back(key(nodes[hop - 1], nodes[hop]));
    }
    return nodes.size() - 1;
  }

  // Ends the slot. Replaces `busiest` by a link of the slot with a higher relative load, or with
  // the same relative load and a lower (from, to, slot).
  void end_slot(std::int64_t slot, SlotLoad& busiest) {
    for (const std::uint64_t link : touched_) {
      std::uint32_t& load = loads_[link];
      LinkLoad here{static_cast<std::uint32_t>(link >> 32), static_cast<std::uint32_t>(link), load,
                    1};
      load = 0;
      here.capacity = topology_.capacity(here.from, here.to);
      const std::uint64_t there = key(busiest.link.from, busiest.link.to);
      const bool first = link != there ? link < there : slot < busiest.slot;
      if (is_nearer(here, busiest.link) || (first && !is_nearer(busiest.link, here))) {
        busiest = {here, slot};
      }
    }
    touched_.clear();
  }

 private:
  const topology::Topology& topology_;
  std::unordered_map<std::uint64_t, std::uint32_t> loads_;
  std::vector<std::uint64_t> touched_;  // links with a load in this slot
};

// Finds the link with the highest relative load over all slots. `uses` must be sorted by slot.
// False: too many hops.
bool find_busiest(ExpandedSchedule& schedule, const std::vector<LinkUse>& uses, SlotLoad& busiest) {
  SlotLoads loads(*schedule.topology);
  const std::size_t most = max_hops(schedule);
  std::size_t hops = 0;
  for (std::size_t begin = 0, end = 0; begin < uses.size(); begin = end) {
    for (; end < uses.size() && uses[end].slot == uses[begin].slot; ++end) {
      hops += loads.add(uses[end].from, uses[end].to);
      if (hops > most) return false;
    }
    loads.end_slot(uses[begin].slot, busiest);
  }
  schedule.spent += static_cast<std::int64_t>(hops) / kHopsAnInstance;
  return true;
}

// Returns for each pair of nodes the uses of its busiest slot, all in one slot.
std::vector<LinkUse> most_of_each_pair(std::vector<LinkUse> uses) {
  const auto pair = [](const LinkUse& use) { return key(use.from, use.to); };
  std::sort(uses.begin(), uses.end(), [&](const LinkUse& a, const LinkUse& b) {
    return pair(a) != pair(b) ? pair(a) < pair(b) : a.slot < b.slot;
  });
  std::vector<LinkUse> most;
  for (std::size_t begin = 0, end = 0; begin < uses.size();) {
    std::size_t in_slot = 0, in_busiest = 0;
    for (end = begin; end < uses.size() && pair(uses[end]) == pair(uses[begin]); ++end) {
      in_slot = end > begin && uses[end].slot == uses[end - 1].slot ? in_slot + 1 : 1;
      in_busiest = std::max(in_busiest, in_slot);
    }
    most.insert(most.end(), in_busiest, {uses[begin].from, uses[begin].to, 0});
    begin = end;
  }
  return most;
}

// Returns a send whose route crosses the link in the slot; in any slot if `slot` is null.
const Instance* sender_over(const ExpandedSchedule& schedule, const LinkLoad& link,
                            const std::int64_t* slot, std::uint32_t& node) {
  for (node = 0; node < schedule.instances.size(); ++node) {
    for (const Instance& send : schedule.instances[node]) {
      if (send.kind != ActionKind::kSend || (slot != nullptr && send.step != *slot)) continue;
      const auto route = schedule.topology->route(node, static_cast<std::uint32_t>(send.peer));
      for (std::size_t hop = 1; hop < route.size(); ++hop) {
        if (route[hop - 1] == link.from && route[hop] == link.to) return &send;
      }
    }
  }
  return nullptr;
}

}  // namespace

Finding check_loads(ExpandedSchedule& schedule, std::vector<LinkUse> uses, Verdict& verdict) {
  SlotLoad lock_step, async;
  std::sort(uses.begin(), uses.end(),
            [](const LinkUse& a, const LinkUse& b) { return a.slot < b.slot; });
  if (!find_busiest(schedule, uses, lock_step) ||
      !find_busiest(schedule, most_of_each_pair(std::move(uses)), async)) {
    return too_many_hops(schedule);
  }
  verdict.slot = verdict.slot && !lock_step.too_much();
  verdict.async = verdict.async && !async.too_much();
  const bool is_async = schedule.common->contention == ContentionGuarantee::kAsync;
  const SlotLoad& claimed = is_async ? async : lock_step;
  if (is_nearer(claimed.link, verdict.busiest)) verdict.busiest = claimed.link;
  if (!claimed.too_much()) return std::nullopt;
  std::uint32_t node = 0;
  const Instance* send =
      sender_over(schedule, claimed.link, is_async ? nullptr : &claimed.slot, node);
  const std::int64_t where = send == nullptr ? -1 : std::int64_t{node};
  Counterexample example =
      found(Property::kLinks, schedule, where, send,
            "the link " + schedule.topology->node_name(claimed.link.from) + " -> " +
                schedule.topology->node_name(claimed.link.to) + " on its route carries " +
                std::to_string(claimed.link.load) +
                (is_async ? " at the same time under timing skew" : " in the step") +
                "; its capacity is " + std::to_string(claimed.link.capacity) +
                (is_async ? "; contention guarantee ASYNC is claimed" : ""));
  if (send == nullptr) {
    example.from = claimed.link.from;
    example.to = claimed.link.to;
  }
  return example;
}

Finding check_links(ExpandedSchedule& schedule, Verdict& verdict) {
  std::vector<LinkUse> uses;
  const std::size_t most = max_hops(schedule);
  for (std::uint32_t node = 0; node < schedule.instances.size(); ++node) {
    for (const Instance& send : schedule.instances[node]) {
      if (send.kind != ActionKind::kSend) continue;
      for (std::int64_t tick = 0; tick < send_ticks(*schedule.common); ++tick) {
        uses.push_back({node, static_cast<std::uint32_t>(send.peer), send.step + tick});
      }
      if (uses.size() > most) return too_many_hops(schedule);
    }
  }
  return check_loads(schedule, std::move(uses), verdict);
}

}  // namespace espalier::verify

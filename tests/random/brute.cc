#include "tests/random/brute.h"

#include <algorithm>
#include <array>

#include "collectives/schedule/program.h"
#include "tests/mutation/formulas.h"

namespace espalier::random {
namespace {

using mutation::count_at;
using mutation::down;

// No phase is this long, and of no action are so many instances looked at.
constexpr std::int64_t kFar = std::int64_t{1} << 44;
constexpr std::int64_t kMaxInstances = 1 << 20;

std::string name(std::size_t node) { return "node " + std::to_string(node); }

std::int64_t ticks(std::uint32_t field) { return std::max<std::int64_t>(1, field); }

// When a transfer takes its port: a send from its step on, a receive up to its step.
std::int64_t port_from(const NodeEvents& node, const Event& event) {
  return event.is_send() ? event.step : event.step - ticks(node.program->send_ticks) + 1;
}

// Whether two transfers of a node at the same time need one port of the model.
bool clash(espalier_PortModel model, const Event& one, const Event& other) {
  const bool alike = one.kind == other.kind;
  return (model == espalier_PortModel_ONE_PORT_DUPLEX && alike) ||
         model == espalier_PortModel_SIMPLEX ||
         (model == espalier_PortModel_SINGLE_SEND && alike && one.is_send());
}

}  // namespace

std::int64_t Reading::read(std::uint32_t ref, std::int64_t i) {
  const std::int64_t value = mutation::index_at(program_, ref, i);
  if (index_value(program_, ref, i) != value) wraps_ = true;
  return value;
}

std::int64_t Reading::value(std::uint32_t ref, std::int64_t i) {
  if (rows_.empty()) rows_.resize(program_.indices_count);
  std::vector<std::int64_t>& row = rows_[ref];
  if (i < 0 || i >= kMaxInstances) return read(ref, i);
  // A window's instances are far from those at hand.
  if (i > static_cast<std::int64_t>(row.size()) + 1024) return read(ref, i);
  while (static_cast<std::int64_t>(row.size()) <= i) {
    row.push_back(read(ref, static_cast<std::int64_t>(row.size())));
  }
  return row[static_cast<std::size_t>(i)];
}

std::pair<std::int64_t, std::int64_t> given_segments(const espalier_Program& program,
                                                     std::uint8_t buffer) {
  using Given = std::pair<std::int64_t, std::int64_t>;
  const std::int64_t node = program.node;
  const Given all{0, program.segments}, own{node, node + 1}, none{0, 0};
  if (program.node >= program.ranks) return none;
  const bool input = buffer == espalier_Buffer_INPUT, root = program.node == program.root;
  switch (program.collective) {
    case espalier_Collective_BROADCAST: return input == root ? all : none;
    case espalier_Collective_REDUCE: return input || root ? all : none;
    case espalier_Collective_EXSCAN: return input || program.node > 0 ? all : none;
    case espalier_Collective_SCATTER: return !input ? own : root ? all : none;
    case espalier_Collective_GATHER: return input ? own : root ? all : none;
    case espalier_Collective_ALLGATHER: return input ? own : all;
    case espalier_Collective_REDUCE_SCATTER: return input ? all : own;
    case espalier_Collective_BARRIER: return input ? all : none;  // of no bytes
    default: return all;
  }
}

Brute::Brute(const topology::Topology& topology, const Programs& programs,
             bool links)
    : topology_(topology), programs_(programs), links_(links), nodes_(programs.size()) {
  for (const Program& program : programs) readings_.emplace_back(program);
  for (const topology::Link& link : topology.links()) {
    capacities_[{static_cast<std::int32_t>(link.from), static_cast<std::int32_t>(link.to)}] =
        link.capacity;
  }
}

std::int64_t Brute::lanes(std::int32_t from, std::int32_t to) const {
  const auto link = capacities_.find({from, to});
  if (link != capacities_.end()) return link->second;
  // Where routers have no programs the fabric takes a message to any rank.
  return programs_.size() > programs_[0].ranks ? 0 : 1;
}

Brute::Window Brute::find_instances(Reading& reading, const espalier_Action& action,
                                    std::int64_t period, Window steps, std::int64_t blocks) {
  const espalier_Program& program = reading.program();
  const std::int64_t start = count_at(program.counts[action.t0_ref], blocks);
  const std::int64_t many = count_at(program.counts[action.instances_ref], blocks);
  if (action.pace_ref == 0) {
    return {std::max<std::int64_t>(0, -down(start - steps.first, period)),
            std::min(many, down(steps.end - 1 - start, period) + 1)};
  }
  // A pace does not fall, or falls where a whole run shows it.
  const auto find = [&](std::int64_t step) {
    std::int64_t low = 0, high = std::max<std::int64_t>(0, many);
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      const std::int64_t far = kFar / period;
      const std::int64_t turn = std::clamp(reading.value(action.pace_ref, middle), -far, far);
      if (start + period * turn < step) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  return {find(steps.first), find(steps.end)};
}

std::string Brute::expand_action(Reading& reading, const espalier_Action& action,
                                 const espalier_Phase& phase, std::int64_t steps, Window window,
                                 NodeEvents& out) {
  const espalier_Program& program = reading.program();
  const std::int64_t start = count_at(program.counts[action.t0_ref], out.blocks);
  const std::int64_t period = phase.period, before = out.phase_ends.back();
  const bool send = action.kind == espalier_Kind_SEND;
  const bool transfer = send || action.kind == espalier_Kind_RECEIVE;
  const bool paced = action.pace_ref != 0, whole = window.first <= 0 && window.end == INT64_MAX;
  // Every instance of a pace counts; without one those outside the phase do not exist.
  Window instances{0, count_at(program.counts[action.instances_ref], out.blocks)};
  if (!paced || !whole) {
    const Window inside{std::max<std::int64_t>(0, window.first - before),
                        std::min(steps, whole ? steps : window.end - before)};
    instances = find_instances(reading, action, period, inside, out.blocks);
  }
  const std::int64_t first = instances.first, end = instances.end;
  if (end - first > kMaxInstances) return "more instances than can be looked at";
  std::int64_t earliest = whole ? 0 : window.first - before;
  const auto place_at = [&](bool has, const espalier_Place& place, std::int64_t i) {
    Memory at;
    if (!has) return at;
    const auto narrow = [](std::int64_t value) {
      return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, -2, 1 << 30));
    };
    at.buffer = static_cast<std::uint8_t>(place.buffer);
    at.segment = narrow(reading.value(place.segment_ref, i));
    std::int64_t block = reading.value(place.block_ref, i);
    if (action.clamp && block >= out.blocks) block = out.blocks - 1;
    at.block = narrow(block);
    at.run = std::max<std::int32_t>(1, place.run);
    if (place.buffer == espalier_Buffer_SCRATCH) at.slot = narrow(reading.value(place.slot_ref, i));
    return at;
  };
  const std::uint32_t moved = send ? action.a.block_ref : action.into.block_ref;
  for (std::int64_t i = first; i < end; ++i) {
    std::int64_t turn = i;
    if (paced) turn = std::clamp(reading.value(action.pace_ref, i), -kFar / period, kFar / period);
    const std::int64_t step = start + period * turn;
    if (paced && (step < earliest || step >= steps)) {
      return name(program.node) + " stalls: the pace of an action falls or leaves its phase";
    }
    earliest = step + (transfer ? 0 : 1);
    const std::int64_t block = reading.value(moved, i);
    if (block < 0 || (block >= out.blocks && !action.clamp)) continue;
    Event event;
    event.step = before + step;
    event.kind = static_cast<std::uint8_t>(action.kind);
    event.action = static_cast<std::uint8_t>(&action - program.actions);
    event.phase = static_cast<std::uint8_t>(&phase - program.phases);
    event.after = action.after;
    if (transfer) {
      const std::int64_t link = reading.value(action.link_ref, i);
      const bool ring = program.ring_peers > 0;
      const std::int64_t links = ring ? program.ring_peers : program.peers_count;
      if (link < 0 || link >= links) return name(program.node) + " names a link that is not there";
      event.peer = static_cast<std::int32_t>(ring ? (program.node + 1 + link) % program.ranks
                                                  : program.peers[link]);
    }
    event.into = place_at(action.has_into, action.into, i);
    event.a = place_at(action.has_a, action.a, i);
    event.b = place_at(action.has_b, action.b, i);
    out.events.push_back(event);
  }
  return {};
}

std::string Brute::check_place(const NodeEvents& node, const Memory& place) const {
  if (place.buffer == 0) return {};
  const espalier_Program& program = *node.program;
  const std::string who = name(program.node);
  const bool scratch = place.buffer == espalier_Buffer_SCRATCH;
  const auto segments = static_cast<std::int64_t>(program.segments);
  if (place.segment < 0 || place.segment + place.run > segments || place.block < 0 ||
      place.block >= node.blocks || (place.run > 1 && node.blocks > 1)) {
    return who + " uses a block that is not there";
  }
  if (scratch && (place.slot < 0 || place.slot + place.run >
                                        static_cast<std::int64_t>(program.scratch_blocks))) {
    return who + " uses a slot that it does not claim";
  }
  if (scratch) return {};
  const auto [first, end] = given_segments(program, place.buffer);
  if (place.segment >= first && place.segment + place.run <= end) return {};
  return who + " uses a buffer that its caller does not give";
}

std::string Brute::expand(std::uint32_t at, std::int64_t blocks, Window window) {
  NodeEvents& node = nodes_[at];
  const espalier_Program& program = programs_[at];
  node.program = &program;
  node.blocks = blocks;
  node.phase_ends.assign(1, 0);
  node.events.clear();
  std::uint32_t next = 0;
  for (std::uint32_t k = 0; k < program.phases_count; ++k) {
    const espalier_Phase& phase = program.phases[k];
    const std::int64_t steps =
        std::max<std::int64_t>(0, count_at(program.counts[phase.steps_ref], blocks));
    for (std::uint32_t end = next + phase.actions; next < end; ++next) {
      std::string wrong =
          expand_action(readings_[at], program.actions[next], phase, steps, window, node);
      if (!wrong.empty()) return wrong;
    }
    node.phase_ends.push_back(node.phase_ends.back() + steps);
  }
  node.phase_ends.erase(node.phase_ends.begin());
  if (readings_[at].wraps()) return name(at) + " has an index that wraps";
  // Events were added in the order of actions and instances, which is that of a step.
  std::stable_sort(node.events.begin(), node.events.end(),
                   [](const Event& a, const Event& b) { return a.step < b.step; });
  for (const Event& event : node.events) {
    for (const Memory* place : {&event.into, &event.a, &event.b}) {
      std::string wrong = check_place(node, *place);
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

// All nodes have the same phases, each as long as what is done in it, and so many steps in all.
std::string Brute::check_claims() const {
  const std::vector<std::int64_t>& ends = nodes_[0].phase_ends;
  std::vector<std::int64_t> used(ends.size(), 0);
  for (std::size_t at = 0; at < ends.size(); ++at) used[at] = at == 0 ? 0 : ends[at - 1];
  for (const NodeEvents& node : nodes_) {
    const espalier_Program& program = *node.program;
    if (node.phase_ends != ends) return name(program.node) + " has other phases than node 0";
    if (count_at(program.counts[program.steps_ref], node.blocks) != ends.back()) {
      return name(program.node) + " claims other steps than its phases have";
    }
    if (count_at(program.counts[program.bound_ref], node.blocks) > ends.back()) {
      return name(program.node) + " claims a bound above its steps";
    }
    for (const Event& event : node.events) {
      used[event.phase] = std::max(used[event.phase], event.step + 1);
    }
  }
  return used == ends ? std::string() : "a phase claims other steps than it takes";
}

std::string Brute::check_ports(std::size_t at) const {
  const NodeEvents& node = nodes_[at];
  const std::int64_t hold = ticks(node.program->send_ticks);
  const auto me = static_cast<std::int32_t>(at);
  for (std::size_t k = 0; k < node.events.size(); ++k) {
    const Event& event = node.events[k];
    if (event.is_operation()) continue;
    if (event.peer < 0 || event.peer >= static_cast<std::int32_t>(nodes_.size())) {
      return name(at) + " has no such peer";
    }
    std::int64_t left = event.is_send() ? lanes(me, event.peer) : lanes(event.peer, me);
    if (left == 0) return name(at) + " has no link to its peer";
    for (std::size_t j = k; j-- > 0 && node.events[j].step > event.step - 2 * hold;) {
      const Event& other = node.events[j];
      if (other.is_operation()) continue;
      const std::int64_t apart = port_from(node, event) - port_from(node, other);
      if (apart >= hold || apart <= -hold) continue;
      if (other.kind == event.kind && other.peer == event.peer) --left;
      if (left == 0 || clash(node.program->port_model, event, other)) {
        return name(at) + " breaks its ports in step " + std::to_string(event.step);
      }
    }
  }
  return {};
}

std::string Brute::check_matching(Window window) const {
  std::map<Pair, std::array<std::vector<const Event*>, 2>> ends;
  const std::int64_t flight = ticks(programs_[0].latency_ticks) - 1;
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    const auto me = static_cast<std::int32_t>(at);
    for (const Event& event : nodes_[at].events) {
      if (event.is_operation()) continue;
      // Of a part of a run only what has both ends in it.
      if (event.is_send() && event.step >= window.end - flight) continue;
      if (event.is_receive() && event.step < window.first + flight) continue;
      const Pair link = event.is_send() ? Pair{me, event.peer} : Pair{event.peer, me};
      ends[link][event.is_send() ? 0 : 1].push_back(&event);
    }
  }
  const bool named = programs_[0].collective != espalier_Collective_ALL_TO_ALL;
  for (const auto& [link, both] : ends) {
    const std::string where = name(static_cast<std::size_t>(link.first)) + " and " +
                              name(static_cast<std::size_t>(link.second));
    if (both[0].size() != both[1].size()) return where + " have messages without another end";
    for (std::size_t k = 0; k < both[0].size(); ++k) {
      const Event& send = *both[0][k];
      const Event& receive = *both[1][k];
      const bool same = send.step + flight == receive.step && send.a.block == receive.into.block &&
                        send.a.run == receive.into.run &&
                        (!named || send.a.segment == receive.into.segment);
      if (!same) return where + " disagree on step or block in step " + std::to_string(send.step);
    }
  }
  return {};
}

// In lock step, and as many transfers of each pair at once as it ever has in a step.
std::string Brute::check_links() const {
  if (!links_) return {};
  std::map<std::pair<std::int64_t, Pair>, std::int64_t> loads, pairs;
  std::map<Pair, std::int64_t> most;
  auto& routes = const_cast<Brute*>(this)->routes_;
  const bool any_drift = programs_[0].grade == espalier_Grade_ASYNC;
  const std::int64_t hold = ticks(programs_[0].send_ticks);
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    for (const Event& event : nodes_[at].events) {
      if (!event.is_send()) continue;
      const Pair pair{static_cast<std::int32_t>(at), event.peer};
      std::vector<std::uint32_t>& route = routes[pair];
      if (route.empty()) {
        route = topology_.route(static_cast<std::uint32_t>(pair.first),
                                static_cast<std::uint32_t>(pair.second));
      }
      for (std::int64_t tick = 0; tick < hold; ++tick) {
        most[pair] = std::max(most[pair], ++pairs[{event.step + tick, pair}]);
        for (std::size_t hop = 0; hop + 1 < route.size(); ++hop) {
          const Pair link{static_cast<std::int32_t>(route[hop]),
                          static_cast<std::int32_t>(route[hop + 1])};
          if (++loads[{event.step + tick, link}] > capacities_.at(link)) {
            return "a link carries more than it can in step " + std::to_string(event.step + tick);
          }
        }
      }
    }
  }
  if (!any_drift) return {};
  std::map<Pair, std::int64_t> worst;
  for (const auto& [pair, many] : most) {
    const std::vector<std::uint32_t>& route = routes[pair];
    for (std::size_t hop = 0; hop + 1 < route.size(); ++hop) {
      const Pair link{static_cast<std::int32_t>(route[hop]),
                      static_cast<std::int32_t>(route[hop + 1])};
      worst[link] += many;
      if (worst[link] > capacities_.at(link)) return "a link carries more than it can at some drift";
    }
  }
  return {};
}

std::string Brute::check(std::int64_t blocks, InPlace in_place) {
  std::string wrong;
  for (std::uint32_t at = 0; at < programs_.size() && wrong.empty(); ++at) {
    wrong = expand(at, blocks, {});
  }
  if (wrong.empty()) wrong = check_claims();
  for (std::size_t at = 0; at < nodes_.size() && wrong.empty(); ++at) wrong = check_ports(at);
  if (wrong.empty()) wrong = check_matching({INT64_MIN / 2, INT64_MAX});
  if (wrong.empty()) wrong = run_in_lock_step(nodes_, in_place);
  for (std::size_t at = 0; at < nodes_.size() && wrong.empty(); ++at) {
    wrong = find_hazard(nodes_[at], in_place);
  }
  if (wrong.empty()) wrong = check_links();
  return wrong.empty() ? wrong : "N = " + std::to_string(blocks) + ": " + wrong;
}

std::string Brute::check_window(std::int64_t blocks, Window window) {
  std::string wrong;
  for (std::uint32_t at = 0; at < programs_.size() && wrong.empty(); ++at) {
    wrong = expand(at, blocks, window);
  }
  for (std::size_t at = 0; at < nodes_.size() && wrong.empty(); ++at) wrong = check_ports(at);
  if (wrong.empty()) wrong = check_matching(window);
  for (std::size_t at = 0; at < nodes_.size() && wrong.empty(); ++at) {
    wrong = check_slots(nodes_[at]);
    if (wrong.empty()) wrong = find_hazard(nodes_[at], InPlace::kNo);
  }
  if (wrong.empty()) wrong = check_links();
  return wrong.empty() ? wrong : "N = " + std::to_string(blocks) + ": " + wrong;
}

}  // namespace espalier::random

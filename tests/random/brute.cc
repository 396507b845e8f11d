#include "tests/random/brute.h"

#include <algorithm>
#include <array>

#include "tests/mutation/formulas.h"

namespace espalier::random {
namespace {

using mutation::count_at;

// Counters for each use of a link, beyond which they are sorted.
constexpr std::int64_t kSparseTicks = 16;

std::string name(std::size_t node) { return "node " + std::to_string(node); }

}  // namespace

Brute::Brute(const topology::Topology& topology, const Programs& programs, bool links)
    : topology_(topology), programs_(programs), links_(links), nodes_(programs.size()) {
  for (const Program& program : programs) readings_.emplace_back(program);
  capacities_.assign(static_cast<std::size_t>(width()) * width(), 0);
  for (const topology::Link& link : topology.links()) {
    capacities_[at({static_cast<std::int32_t>(link.from), static_cast<std::int32_t>(link.to)})] =
        link.capacity;
  }
}

std::int64_t Brute::lanes(std::int32_t from, std::int32_t to) const {
  const std::int64_t capacity = capacities_[at({from, to})];
  if (capacity > 0) return capacity;
  // If routers have no programs, the fabric takes a message to any rank.
  return programs_.size() > programs_[0].ranks ? 0 : 1;
}

std::string Brute::check_operand(const NodeEvents& node, const Memory& place) const {
  if (place.buffer == 0) return {};
  const espalier_Program& program = *node.program;
  const bool scratch = place.buffer == Buffer::kScratch;
  const auto segments = static_cast<std::int64_t>(program.segments);
  if (place.segment < 0 || place.segment + place.segment_count > segments || place.block < 0 ||
      place.block >= node.blocks || (place.segment_count > 1 && node.blocks > 1)) {
    return name(program.node) + " uses a block that is not there";
  }
  if (scratch && (place.slot < 0 || place.slot + place.segment_count >
                                        static_cast<std::int64_t>(program.scratch_blocks))) {
    return name(program.node) + " uses a slot that it does not claim";
  }
  if (scratch) return {};
  const auto [first, end] = given_segments(program, place.buffer);
  if (place.segment >= first && place.segment + place.segment_count <= end) return {};
  return name(program.node) + " uses a buffer that its caller does not give";
}

// Checks that all nodes have the same phases, each as long as the actions in it take, and that the
// claimed steps are their sum.
std::string Brute::check_claims() const {
  const std::vector<std::int64_t>& ends = nodes_[0].phase_ends;
  std::vector<std::int64_t> used(ends.size(), 0);
  for (std::size_t i = 0; i < ends.size(); ++i) used[i] = i == 0 ? 0 : ends[i - 1];
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
  const mutation::Contract contract = mutation::contract_of(*node.program);
  const auto lanes_of = [this](std::int64_t from, std::int64_t to) {
    return lanes(static_cast<std::int32_t>(from), static_cast<std::int32_t>(to));
  };
  std::string wrong;
  for (std::size_t k = 0; k < node.events.size() && wrong.empty(); ++k) {
    if (node.events[k].is_operation()) continue;
    wrong = contract.check_ports(node.events, k, at, nodes_.size(), lanes_of);
  }
  return wrong;
}

std::string Brute::check_matching(Window window) const {
  std::vector<std::array<std::vector<const Event*>, 2>> ends(nodes_.size() * nodes_.size());
  const std::int64_t flight = mutation::contract_of(programs_[0]).latency_ticks - 1;
  for (std::size_t me = 0; me < nodes_.size(); ++me) {
    for (const Event& event : nodes_[me].events) {
      if (event.is_operation()) continue;
      // In a part of a run, only the transfers with both ends in it count.
      if (event.is_send() && event.step >= window.end - flight) continue;
      if (event.is_receive() && event.step < window.first + flight) continue;
      const auto peer = static_cast<std::size_t>(event.peer);
      const std::size_t from = event.is_send() ? me : peer, to = event.is_send() ? peer : me;
      ends[from * nodes_.size() + to][event.is_send() ? 0 : 1].push_back(&event);
    }
  }
  const bool named = programs_[0].collective != Collective::kAllToAll;
  for (std::size_t link = 0; link < ends.size(); ++link) {
    const auto& both = ends[link];
    const auto where = [&] {
      return name(link / nodes_.size()) + " and " + name(link % nodes_.size());
    };
    if (both[0].size() != both[1].size()) return where() + " have messages without another end";
    for (std::size_t k = 0; k < both[0].size(); ++k) {
      const Event& send = *both[0][k];
      const Event& receive = *both[1][k];
      const bool same = send.step + flight == receive.step && send.a.block == receive.into.block &&
                        send.a.segment_count == receive.into.segment_count &&
                        (!named || send.a.segment == receive.into.segment);
      if (!same) return where() + " disagree on step or block in step " + std::to_string(send.step);
    }
  }
  return {};
}

const std::vector<std::uint32_t>& Brute::route(Pair pair) {
  if (routes_.empty()) routes_.resize(capacities_.size());
  std::vector<std::uint32_t>& links = routes_[at(pair)];
  if (!links.empty()) return links;
  const std::vector<std::uint32_t> nodes = topology_.route(static_cast<std::uint32_t>(pair.first),
                                                           static_cast<std::uint32_t>(pair.second));
  for (std::size_t hop = 0; hop + 1 < nodes.size(); ++hop) {
    links.push_back(static_cast<std::uint32_t>(
        at({static_cast<std::int32_t>(nodes[hop]), static_cast<std::int32_t>(nodes[hop + 1])})));
  }
  return links;
}

// Checks the links in lock step; then with the maximum transfers of each pair, over all steps, at
// once.
std::string Brute::check_links() {
  if (!links_) return {};
  using Use = std::pair<std::int64_t, std::uint32_t>;  // tick, and a link or pair
  std::vector<Use> loads, pairs;
  const std::int64_t hold = mutation::contract_of(programs_[0]).send_ticks;
  for (std::size_t me = 0; me < nodes_.size(); ++me) {
    for (const Event& event : nodes_[me].events) {
      if (!event.is_send()) continue;
      const Pair pair{static_cast<std::int32_t>(me), event.peer};
      for (std::int64_t tick = event.step; tick < event.step + hold; ++tick) {
        pairs.emplace_back(tick, static_cast<std::uint32_t>(at(pair)));
        for (const std::uint32_t link : route(pair)) loads.emplace_back(tick, link);
      }
    }
  }
  // Calls use(use, number of times it is held); before that perhaps for smaller numbers, too.
  const auto each = [this](std::vector<Use>& uses, const auto& use) {
    if (uses.empty()) return;
    const auto [first, last] = std::minmax_element(uses.begin(), uses.end());
    const std::int64_t begin = first->first, ticks = last->first - begin + 1;
    const auto many = static_cast<std::int64_t>(capacities_.size());
    if (ticks > kSparseTicks * static_cast<std::int64_t>(uses.size()) / many) {
      std::sort(uses.begin(), uses.end());
      for (std::size_t i = 0, end = 0; i < uses.size(); i = end) {
        while (end < uses.size() && uses[end] == uses[i]) ++end;
        use(uses[i], static_cast<std::int64_t>(end - i));
      }
      return;
    }
    loads_.assign(static_cast<std::size_t>(ticks * many), 0);
    for (const auto& [tick, at] : uses) {
      use(Use{tick, at}, ++loads_[static_cast<std::size_t>((tick - begin) * many + at)]);
    }
  };
  std::string wrong;
  each(loads, [&](const Use& use, std::int64_t many) {
    if (!wrong.empty() || many <= capacities_[use.second]) return;
    wrong = "a link carries more than it can in step " + std::to_string(use.first);
  });
  if (!wrong.empty() || programs_[0].contention != ContentionGuarantee::kAsync) return wrong;
  std::vector<std::int64_t> most(capacities_.size(), 0), worst = most;
  each(pairs, [&](const Use& use, std::int64_t many) {
    most[use.second] = std::max(most[use.second], many);
  });
  for (std::size_t pair = 0; pair < most.size(); ++pair) {
    if (most[pair] == 0) continue;
    for (const std::uint32_t link : routes_[pair]) {
      worst[link] += most[pair];
      if (worst[link] > capacities_[link])
        return "a link carries more than it can at some timing skew";
    }
  }
  return {};
}

std::string Brute::check(std::int64_t blocks, InPlace in_place) {
  std::string wrong;
  for (std::uint32_t i = 0; i < programs_.size() && wrong.empty(); ++i) {
    wrong = expand(i, blocks, {});
  }
  if (wrong.empty()) wrong = check_claims();
  for (std::size_t i = 0; i < nodes_.size() && wrong.empty(); ++i) wrong = check_ports(i);
  if (wrong.empty()) wrong = check_matching({INT64_MIN / 2, INT64_MAX});
  if (wrong.empty()) wrong = run_in_lock_step(nodes_, in_place);
  for (std::size_t position = 0; position < nodes_.size() && wrong.empty(); ++position) {
    wrong = find_hazard(nodes_[position], in_place);
  }
  if (wrong.empty()) wrong = check_links();
  return wrong.empty() ? wrong : "N = " + std::to_string(blocks) + ": " + wrong;
}

std::string Brute::check_window(std::int64_t blocks, Window window) {
  std::string wrong;
  for (std::uint32_t i = 0; i < programs_.size() && wrong.empty(); ++i) {
    wrong = expand(i, blocks, window);
  }
  for (std::size_t i = 0; i < nodes_.size() && wrong.empty(); ++i) wrong = check_ports(i);
  if (wrong.empty()) wrong = check_matching(window);
  for (std::size_t position = 0; position < nodes_.size() && wrong.empty(); ++position) {
    wrong = check_slots(nodes_[position]);
    if (wrong.empty()) wrong = find_hazard(nodes_[position], InPlace::kNo);
  }
  if (wrong.empty()) wrong = check_links();
  return wrong.empty() ? wrong : "N = " + std::to_string(blocks) + ": " + wrong;
}

}  // namespace espalier::random

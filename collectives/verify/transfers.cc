// Points 1, 2, 4 and 8: what crosses the links, and when.

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "collectives/verify/check.h"
#include "espalier/base/arithmetic.h"

namespace espalier::verify {
namespace {

bool is_transfer(const Instance& instance) {
  return instance.kind == espalier_Kind_SEND || instance.kind == espalier_Kind_RECEIVE;
}

std::string words(const Instance& instance) {
  const bool send = instance.kind == espalier_Kind_SEND;
  return std::string(send ? "sends " : "receives ") + block_name(moved(instance)) +
         (send ? " to node " : " from node ") + std::to_string(instance.peer);
}

// The messages of one direction of a link as its two ends see them: by (step, action), the order in
// which they meet.
struct Ends {
  std::vector<const Instance*> sends, receives;
};

Ends ends_of(const Case& at, std::uint32_t from, std::uint32_t to) {
  Ends ends;
  for (const Instance& instance : at.instances[from]) {
    if (instance.kind == espalier_Kind_SEND && instance.peer == to) ends.sends.push_back(&instance);
  }
  for (const Instance& instance : at.instances[to]) {
    if (instance.kind == espalier_Kind_RECEIVE && instance.peer == from) {
      ends.receives.push_back(&instance);
    }
  }
  return ends;
}

std::string same_step(const Case& at) {
  const std::int64_t flight = latency_ticks(*at.common) - 1;
  if (flight == 0) return "both ends must name the same step";
  return "a receive must be " + std::to_string(flight) + " steps after its send, in its phase";
}

// `wrong`, on a link from -> to, has no counterpart in its step. Says the likeliest reason.
Counterexample unmatched(const Case& at, std::uint32_t from, std::uint32_t to,
                         const Instance& wrong) {
  const Ends ends = ends_of(at, from, to);
  const bool send = wrong.kind == espalier_Kind_SEND;
  const std::uint32_t here = send ? from : to;
  if (ends.sends.size() == ends.receives.size()) {
    bool same_order = true;
    for (std::size_t k = 0; k < ends.sends.size(); ++k) {
      same_order =
          same_order && same_blocks(*at.common, moved(*ends.sends[k]), moved(*ends.receives[k]));
    }
    const auto& mine = send ? ends.sends : ends.receives;
    const auto& theirs = send ? ends.receives : ends.sends;
    const auto k = std::find(mine.begin(), mine.end(), &wrong) - mine.begin();
    if (same_order) {
      return found(Point::kDeadlock, at, here, &wrong,
                   "the other end has the same message in step " + std::to_string(theirs[k]->step) +
                       "; " + same_step(at) + ", or nodes may wait for each other");
    }
  }
  return found(Point::kMatching, at, here, &wrong,
               std::string(send ? "sent, but " : "awaited, but ") +
                   (lanes_of(*at.topology, from, to) > 1 ? "fewer are " : "nothing is ") +
                   (send ? "received" : "sent") + " over this link in that step");
}

Counterexample other_block(const Case& at, std::uint32_t node, const Instance& receive,
                           const Instance& send) {
  return found(Point::kMatching, at, node, &receive,
               "awaited, but the other end sends " + block_name(moved(send)) +
                   " in that step; both must name the same block");
}

// The instances of one step of each node, found by walking forward.
class Cursor {
 public:
  explicit Cursor(const Case& at) : at_(at), next_(at.instances.size(), 0) {}
  // The instances of `node` in `step`; steps must be asked for in order.
  std::pair<std::size_t, std::size_t> in_step(std::size_t node, std::int64_t step) {
    const std::vector<Instance>& all = at_.instances[node];
    const std::size_t begin = next_[node];
    std::size_t end = begin;
    while (end < all.size() && all[end].step == step) ++end;
    next_[node] = end;
    return {begin, end};
  }

 private:
  const Case& at_;
  std::vector<std::size_t> next_;
};

}  // namespace

bool share_port(PortModel model, bool send, bool other_send) {
  const bool same_kind = send == other_send;
  switch (model) {
    case espalier_PortModel_ONE_PORT_DUPLEX: return same_kind;
    case espalier_PortModel_SIMPLEX: return true;
    case espalier_PortModel_SINGLE_SEND: return same_kind && send;
    default: return false;
  }
}

// A transfer holds its port for S steps: a send from its step on, a receive up to its step.
std::int64_t port_begin(const Program& program, bool send, std::int64_t step) {
  return send ? step : step - send_ticks(program) + 1;
}

Finding check_link(const Case& at, std::uint32_t from, std::uint32_t to) {
  const Ends ends = ends_of(at, from, to);
  const std::int64_t flight = latency_ticks(*at.common) - 1;
  for (std::size_t k = 0; k < std::max(ends.sends.size(), ends.receives.size()); ++k) {
    const Instance* send = k < ends.sends.size() ? ends.sends[k] : nullptr;
    const Instance* receive = k < ends.receives.size() ? ends.receives[k] : nullptr;
    if (receive == nullptr || (send != nullptr && send->step + flight < receive->step)) {
      return unmatched(at, from, to, *send);
    }
    if (send == nullptr || receive->step < send->step + flight) {
      return unmatched(at, from, to, *receive);
    }
    if (!same_blocks(*at.common, moved(*send), moved(*receive)))
      return other_block(at, to, *receive, *send);
  }
  return std::nullopt;
}

Finding check_ports(const Case& at, std::uint32_t node) {
  const std::vector<Instance>& all = at.instances[node];
  const Program& common = *at.common;
  const std::int64_t held = send_ticks(common);
  for (std::size_t second = 0; second < all.size(); ++second) {
    if (!is_transfer(all[second])) continue;
    const bool send = all[second].kind == espalier_Kind_SEND;
    const auto peer = static_cast<std::uint32_t>(all[second].peer);
    const std::int64_t begin = port_begin(common, send, all[second].step);
    std::uint32_t free = lanes_of(*at.topology, send ? node : peer, send ? peer : node);
    // Ports of earlier transfers may be held up to 2 (held - 1) steps.
    for (std::size_t first = second;
         first-- > 0 && all[first].step + 2 * (held - 1) >= all[second].step;) {
      if (!is_transfer(all[first])) continue;
      const bool other = all[first].kind == espalier_Kind_SEND;
      if (std::abs(begin - port_begin(common, other, all[first].step)) >= held) continue;
      const bool same_lane = send == other && peer == all[first].peer && --free == 0;
      if (!same_lane && !share_port(common.port_model, send, other)) continue;
      return found(Point::kPorts, at, node, &all[second],
                   std::string(held == 1 ? "in this step it " : "while its port is held it ") +
                       words(all[first]) + " and " + words(all[second]) +
                       (same_lane ? "; the link has too few lanes for both"
                                  : "; its ports carry one of the two"));
    }
  }
  return std::nullopt;
}

Finding check_matching(const Case& at) {
  struct Sent {
    std::uint32_t from;
    const Instance* send;
  };
  std::vector<std::vector<Sent>> inbox(at.instances.size());
  const std::int64_t flight = latency_ticks(*at.common) - 1;
  Cursor sends(at), receives(at);
  for (std::int64_t step = 0; step < at.steps(); ++step) {
    for (std::uint32_t node = 0; node < at.instances.size(); ++node) {
      const auto [begin, end] = sends.in_step(node, step);
      for (std::size_t k = begin; k < end; ++k) {
        const Instance& send = at.instances[node][k];
        if (send.kind != espalier_Kind_SEND) continue;
        if (step + flight >= at.phase_first[send.phase + 1]) {
          return unmatched(at, node, static_cast<std::uint32_t>(send.peer), send);
        }
        inbox[static_cast<std::size_t>(send.peer)].push_back({node, &send});
      }
    }
    for (std::uint32_t node = 0; node < at.instances.size(); ++node) {
      const auto [begin, end] = receives.in_step(node, step);
      for (std::size_t k = begin; k < end; ++k) {
        const Instance& receive = at.instances[node][k];
        if (receive.kind != espalier_Kind_RECEIVE) continue;
        const auto from = static_cast<std::uint32_t>(receive.peer);
        const auto sent = std::find_if(
            inbox[node].begin(), inbox[node].end(),
            [&](const Sent& one) { return one.from == from && one.send->step + flight == step; });
        if (sent == inbox[node].end()) return unmatched(at, from, node, receive);
        if (!same_blocks(*at.common, moved(*sent->send), moved(receive))) {
          return other_block(at, node, receive, *sent->send);
        }
        inbox[node].erase(sent);
      }
      for (const Sent& left : inbox[node]) {
        if (left.send->step + flight <= step) return unmatched(at, left.from, node, *left.send);
      }
    }
  }
  return std::nullopt;
}

Finding check_steps(const Case& at) {
  std::vector<std::int64_t> used(at.common->phases_count, 0);
  for (const std::vector<Instance>& node : at.instances) {
    for (const Instance& instance : node) {
      std::int64_t& steps = used[instance.phase];
      steps = std::max(steps, instance.step + 1 - at.phase_first[instance.phase]);
    }
  }
  const Program& common = *at.common;
  std::int64_t sum = 0;
  for (std::uint32_t phase = 0; phase < common.phases_count; ++phase) {
    const std::int64_t claimed =
        count_value(common.counts[common.phases[phase].steps_ref], at.blocks);
    if (claimed != used[phase]) {
      return found(Point::kSteps, at, -1, nullptr,
                   "phase " + std::to_string(phase) + " claims " + std::to_string(claimed) +
                       " steps, but " + std::to_string(used[phase]) +
                       " are used; the claim must be exact");
    }
    sum += claimed;
  }
  const std::int64_t claimed = count_value(common.counts[common.steps_ref], at.blocks);
  if (claimed != sum) {
    return found(Point::kSteps, at, -1, nullptr,
                 std::to_string(claimed) + " steps are claimed, but the phases have " +
                     std::to_string(sum) + " together; the claim must be exact");
  }
  return check_bound(at, sum);
}

}  // namespace espalier::verify

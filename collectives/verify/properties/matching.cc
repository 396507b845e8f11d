#include <algorithm>
#include <string>
#include <utility>

#include "base/counted.h"
#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/operands.h"
#include "collectives/verify/properties/program_facts.h"

namespace espalier::verify {
namespace {

// The messages of one direction of a link at its two ends, ordered by (step, action): send k
// matches receive k.
struct Ends {
  std::vector<const Instance*> sends, receives;
};

Ends ends_of(const ExpandedSchedule& schedule, std::uint32_t from, std::uint32_t to) {
  Ends ends;
  for (const Instance& instance : schedule.instances[from]) {
    if (instance.kind == ActionKind::kSend && instance.peer == to) ends.sends.push_back(&instance);
  }
  for (const Instance& instance : schedule.instances[to]) {
    if (instance.kind == ActionKind::kReceive && instance.peer == from) {
      ends.receives.push_back(&instance);
    }
  }
  return ends;
}

std::string same_step(const ExpandedSchedule& schedule) {
  const std::int64_t flight = latency_ticks(*schedule.common) - 1;
  if (flight == 0) return "both ends must name the same step";
  return "a receive must be " + counted(flight, "step") + " after its send, in its phase";
}

// Returns the counterexample of `wrong`, on a link from -> to, which has no counterpart in its
// step. The text is the most likely reason.
Counterexample unmatched(const ExpandedSchedule& schedule, std::uint32_t from, std::uint32_t to,
                         const Instance& wrong) {
  const Ends ends = ends_of(schedule, from, to);
  const bool send = wrong.kind == ActionKind::kSend;
  const std::uint32_t here = send ? from : to;
  if (ends.sends.size() == ends.receives.size()) {
    bool same_order = true;
    for (std::size_t k = 0; k < ends.sends.size(); ++k) {
      same_order = same_order &&
                   same_blocks(*schedule.common, moved(*ends.sends[k]), moved(*ends.receives[k]));
    }
    const auto& mine = send ? ends.sends : ends.receives;
    const auto& theirs = send ? ends.receives : ends.sends;
    const auto k = std::find(mine.begin(), mine.end(), &wrong) - mine.begin();
    if (same_order) {
      return found(Property::kDeadlock, schedule, here, &wrong,
                   "the other end has the same message in step " + std::to_string(theirs[k]->step) +
                       "; " + same_step(schedule) + ", or nodes may wait for each other");
    }
  }
  return found(Property::kMatching, schedule, here, &wrong,
               std::string(send ? "sent, but " : "awaited, but ") +
                   (lanes_of(*schedule.topology, from, to) > 1 ? "fewer are " : "nothing is ") +
                   (send ? "received" : "sent") + " over this link in that step");
}

Counterexample other_block(const ExpandedSchedule& schedule, std::uint32_t node,
                           const Instance& receive, const Instance& send) {
  return found(Property::kMatching, schedule, node, &receive,
               "awaited, but the other end sends " + block_name(moved(send)) +
                   " in that step; both must name the same block");
}

// Finds the instances of one step of each node by walking forward.
class Cursor {
 public:
  explicit Cursor(const ExpandedSchedule& schedule)
      : schedule_(schedule), next_(schedule.instances.size(), 0) {}
  // Returns the range of the instances of `node` in `step`. Call it with ascending steps.
  std::pair<std::size_t, std::size_t> in_step(std::size_t node, std::int64_t step) {
    const std::vector<Instance>& all = schedule_.instances[node];
    const std::size_t begin = next_[node];
    std::size_t end = begin;
    while (end < all.size() && all[end].step == step) ++end;
    next_[node] = end;
    return {begin, end};
  }

 private:
  const ExpandedSchedule& schedule_;
  std::vector<std::size_t> next_;
};

}  // namespace

Finding check_link(const ExpandedSchedule& schedule, std::uint32_t from, std::uint32_t to) {
  const Ends ends = ends_of(schedule, from, to);
  const std::int64_t flight = latency_ticks(*schedule.common) - 1;
  for (std::size_t k = 0; k < std::max(ends.sends.size(), ends.receives.size()); ++k) {
    const Instance* send = k < ends.sends.size() ? ends.sends[k] : nullptr;
    const Instance* receive = k < ends.receives.size() ? ends.receives[k] : nullptr;
    if (receive == nullptr || (send != nullptr && send->step + flight < receive->step)) {
      return unmatched(schedule, from, to, *send);
    }
    if (send == nullptr || receive->step < send->step + flight) {
      return unmatched(schedule, from, to, *receive);
    }
    if (!same_blocks(*schedule.common, moved(*send), moved(*receive)))
      return other_block(schedule, to, *receive, *send);
  }
  return std::nullopt;
}

Finding check_matching(const ExpandedSchedule& schedule) {
  struct Sent {
    std::uint32_t from;
    const Instance* send;
  };
  std::vector<std::vector<Sent>> inbox(schedule.instances.size());
  const std::int64_t flight = latency_ticks(*schedule.common) - 1;
  Cursor sends(schedule), receives(schedule);
  for (std::int64_t step = 0; step < schedule.steps(); ++step) {
    for (std::uint32_t node = 0; node < schedule.instances.size(); ++node) {
      const auto [begin, end] = sends.in_step(node, step);
      for (std::size_t k = begin; k < end; ++k) {
        const Instance& send = schedule.instances[node][k];
        if (send.kind != ActionKind::kSend) continue;
        if (step + flight >= schedule.phase_first[send.phase + 1]) {
          return unmatched(schedule, node, static_cast<std::uint32_t>(send.peer), send);
        }
        inbox[static_cast<std::size_t>(send.peer)].push_back({node, &send});
      }
    }
    for (std::uint32_t node = 0; node < schedule.instances.size(); ++node) {
      const auto [begin, end] = receives.in_step(node, step);
      for (std::size_t k = begin; k < end; ++k) {
        const Instance& receive = schedule.instances[node][k];
        if (receive.kind != ActionKind::kReceive) continue;
        const auto from = static_cast<std::uint32_t>(receive.peer);
        const auto sent = std::find_if(
            inbox[node].begin(), inbox[node].end(),
            [&](const Sent& one) { return one.from == from && one.send->step + flight == step; });
        if (sent == inbox[node].end()) return unmatched(schedule, from, node, receive);
        if (!same_blocks(*schedule.common, moved(*sent->send), moved(receive))) {
          return other_block(schedule, node, receive, *sent->send);
        }
        inbox[node].erase(sent);
      }
      for (const Sent& left : inbox[node]) {
        if (left.send->step + flight <= step)
          return unmatched(schedule, left.from, node, *left.send);
      }
    }
  }
  return std::nullopt;
}

}  // namespace espalier::verify

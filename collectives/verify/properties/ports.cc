#include <algorithm>
#include <cstdlib>
#include <string>

#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/operands.h"
#include "collectives/verify/properties/program_facts.h"
#include "espalier/internal/base/step_limits.h"

namespace espalier::verify {
namespace {

std::string words(const Instance& instance) {
  const bool send = instance.kind == ActionKind::kSend;
  return std::string(send ? "sends " : "receives ") + block_name(moved(instance)) +
         (send ? " to node " : " from node ") + std::to_string(instance.peer);
}

// Returns why the transfer is one too many for its link in the step.
std::string fills(const Instance& instance, std::uint32_t lanes) {
  if (lanes <= kMaxLinkMessages) return "; the link has too few lanes for both";
  return "; nodes take at most " + std::to_string(kMaxLinkMessages) +
         " messages of a link in a step, and this one " +
         (instance.kind == ActionKind::kSend ? "sends" : "receives") + " more, on " +
         std::to_string(lanes) + " lanes";
}

// Counts the messages of every step.
Finding count_messages(const ExpandedSchedule& schedule, std::uint32_t node) {
  std::uint32_t sends = 0, receives = 0;
  std::int64_t step = -1;
  for (const Instance& instance : schedule.instances[node]) {
    if (!is_transfer(instance)) continue;
    if (instance.step != step) sends = receives = 0;
    step = instance.step;
    const bool send = instance.kind == ActionKind::kSend;
    if (++(send ? sends : receives) <= kMaxStepMessages) continue;
    return found(Property::kPorts, schedule, node, &instance,
                 std::string("in this step it ") + words(instance) + " after " +
                     std::to_string(kMaxStepMessages) + " other messages; nodes " +
                     (send ? "send" : "receive") + " at most " + std::to_string(kMaxStepMessages) +
                     " in a step");
  }
  return std::nullopt;
}

}  // namespace

std::uint32_t messages_together(const topology::Topology& topology, std::uint32_t from,
                                std::uint32_t to) {
  return std::min(lanes_of(topology, from, to), kMaxLinkMessages);
}

bool share_port(PortModel model, bool send, bool other_send) {
  const bool same_kind = send == other_send;
  switch (model) {
    case PortModel::kOnePortDuplex: return same_kind;
    case PortModel::kSimplex: return true;
    case PortModel::kSingleSend: return same_kind && send;
    default: return false;
  }
}

std::int64_t port_begin(const Program& program, bool send, std::int64_t step) {
  return send ? step : step - send_ticks(program) + 1;
}

Finding check_ports(const ExpandedSchedule& schedule, std::uint32_t node) {
  const std::vector<Instance>& all = schedule.instances[node];
  const Program& common = *schedule.common;
  const std::int64_t held = send_ticks(common);
  for (std::size_t second = 0; second < all.size(); ++second) {
    if (!is_transfer(all[second])) continue;
    const bool send = all[second].kind == ActionKind::kSend;
    const auto peer = static_cast<std::uint32_t>(all[second].peer);
    const std::int64_t begin = port_begin(common, send, all[second].step);
    const std::uint32_t from = send ? node : peer, to = send ? peer : node;
    std::uint32_t free = messages_together(*schedule.topology, from, to);
    // An earlier transfer may share its port up to 2 (held - 1) steps later.
    for (std::size_t first = second;
         first-- > 0 && all[first].step + 2 * (held - 1) >= all[second].step;) {
      if (!is_transfer(all[first])) continue;
      const bool other = all[first].kind == ActionKind::kSend;
      if (std::abs(begin - port_begin(common, other, all[first].step)) >= held) continue;
      const bool same_lane = send == other && peer == all[first].peer && --free == 0;
      if (!same_lane && !share_port(common.port_model, send, other)) continue;
      return found(Property::kPorts, schedule, node, &all[second],
                   std::string(held == 1 ? "in this step it " : "while its port is held it ") +
                       words(all[first]) + " and " + words(all[second]) +
                       (same_lane ? fills(all[second], lanes_of(*schedule.topology, from, to))
                                  : "; its ports carry one of the two"));
    }
  }
  return count_messages(schedule, node);
}

}  // namespace espalier::verify

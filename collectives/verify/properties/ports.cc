#include "collectives/verify/properties/ports.h"

#include <cstdlib>
#include <string>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/operands.h"
#include "collectives/verify/properties/program_facts.h"

namespace espalier::verify {
namespace {

std::string words(const Instance& instance) {
  const bool send = instance.kind == ActionKind::kSend;
  return std::string(send ? "sends " : "receives ") + block_name(moved(instance)) +
         (send ? " to node " : " from node ") + std::to_string(instance.peer);
}

}  // namespace

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
    std::uint32_t free = lanes_of(*schedule.topology, send ? node : peer, send ? peer : node);
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
                       (same_lane ? "; the link has too few lanes for both"
                                  : "; its ports carry one of the two"));
    }
  }
  return std::nullopt;
}

}  // namespace espalier::verify

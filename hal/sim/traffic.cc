#include "hal/sim/traffic.h"

#include <algorithm>

#include "collectives/schedule/expand.h"
#include "hal/sim/fabric.h"

namespace espalier::sim {

std::vector<LinkTraffic> Network::traffic() const {
  std::vector<LinkTraffic> all;
  if (fabric_->wires == nullptr) return all;
  for (const Wire& wire : fabric_->wires->wires) {
    all.push_back({wire.from, wire.to, wire.lanes, wire.blocks,
                   static_cast<double>(wire.held) * 1e-12, wire.waits,
                   static_cast<double>(wire.waited) * 1e-12});
  }
  return all;
}

const Contention& Network::contention() const {
  static const Contention kNone;
  return fabric_->wires == nullptr ? kNone : fabric_->wires->contention;
}

void Network::foresee(const std::vector<const Program*>& programs, std::int64_t blocks) {
  Fabric& fabric = *fabric_;
  fabric.stays.foresee(static_cast<std::uint32_t>(fabric.channels.size()), nodes());
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    if (programs[node] == nullptr) continue;
    std::vector<std::uint32_t> channel_to(nodes(), 0);
    const Node& its = fabric.nodes[node];
    for (std::uint32_t at = its.first + its.links; at-- > its.first;) {
      channel_to[fabric.channels[at].to] = at;
    }
    for (const Instance& one : expand(*programs[node], blocks)) {
      if (one.kind != espalier_Kind_SEND || one.peer < 0 || one.peer >= nodes()) continue;
      const std::uint32_t channel = channel_to[static_cast<std::size_t>(one.peer)];
      Stays::Foreseen& foreseen = fabric.stays.of(channel);
      foreseen.first = fabric.channels[channel].sends_posted;
      foreseen.flight =
          static_cast<std::int32_t>(std::max<std::uint32_t>(programs[node]->latency_ticks, 1)) - 1;
      foreseen.sent.push_back(static_cast<std::int32_t>(one.step));
    }
  }
}

Residence Network::residence() const {
  const Stays& stays = fabric_->stays;
  Residence all;
  all.blocks = stays.blocks;
  if (stays.blocks.empty()) return all;
  all.from = fabric_->channels[stays.longest_channel].from;
  all.to = fabric_->channels[stays.longest_channel].to;
  return all;
}

}  // namespace espalier::sim

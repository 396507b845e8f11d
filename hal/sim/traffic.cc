#include "hal/sim/traffic.h"

#include <algorithm>

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

void Network::begin_residence(std::uint32_t latency_ticks) {
  fabric_->stays.begin(nodes(), static_cast<std::int32_t>(std::max(latency_ticks, 1u)) - 1);
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

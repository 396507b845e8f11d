#include "espalier/hal/sim/traffic.h"

#include <algorithm>

#include "hal/sim/fabric.h"

namespace espalier::sim {

std::vector<LinkTraffic> Network::traffic() const {
  std::vector<LinkTraffic> all;
  if (fabric_->wires == nullptr) return all;
  const Wires& wires = *fabric_->wires;
  all.reserve(wires.wires.size());
  for (std::size_t at = 0; at < wires.wires.size(); ++at) {
    const Wire& wire = wires.wires[at];
    const WireDetails& details = wires.details[at];
    all.push_back({details.from, details.to, wire.lanes, wire.blocks,
                   static_cast<double>(wire.held) * 1e-12, details.waits,
                   static_cast<double>(details.waited) * 1e-12});
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

#include "espalier/internal/hal/sim/traffic.h"

#include <algorithm>

#include "hal/sim/network_state.h"

namespace espalier::sim {

std::vector<LinkTraffic> Network::traffic() const {
  std::vector<LinkTraffic> all;
  if (state_->physical_links == nullptr) return all;
  const PhysicalLinks& physical_links = *state_->physical_links;
  all.reserve(physical_links.links.size());
  for (std::size_t i = 0; i < physical_links.links.size(); ++i) {
    const PhysicalLink& physical_link = physical_links.links[i];
    const PhysicalLinkDetails& details = physical_links.details[i];
    all.push_back({details.from, details.to, physical_link.lanes, physical_link.blocks,
                   static_cast<double>(physical_link.held) * 1e-12, details.waits,
                   static_cast<double>(details.waited) * 1e-12});
  }
  return all;
}

const Contention& Network::contention() const {
  static const Contention none;
  return state_->physical_links == nullptr ? none : state_->physical_links->contention;
}

void Network::begin_residence(std::uint32_t latency_ticks) {
  state_->residence_times.begin(nodes(),
                                static_cast<std::int32_t>(std::max(latency_ticks, 1u)) - 1);
}

Residence Network::residence() const {
  const ResidenceTimes& residence_times = state_->residence_times;
  Residence all{.blocks = residence_times.blocks};
  if (residence_times.blocks.empty()) return all;
  all.from = state_->channels[residence_times.longest_channel].from;
  all.to = state_->channels[residence_times.longest_channel].to;
  return all;
}

}  // namespace espalier::sim

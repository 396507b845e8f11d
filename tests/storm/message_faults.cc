#include "tests/storm/message_faults.h"

#include <algorithm>

namespace espalier::storm {
namespace {

constexpr std::uint32_t kNoiseKinds = fault::kMessageKinds - 1;  // all but delays

}  // namespace

std::uint32_t link_to(const Schedule& schedule, std::uint32_t node, std::uint32_t peer) {
  const auto& peers = schedule.peers[node];
  return static_cast<std::uint32_t>(std::find(peers.begin(), peers.end(), peer) - peers.begin());
}

fault::Faults message_faults(const Plan& plan, const Schedule& schedule, std::uint32_t node) {
  fault::Faults faults;
  for (const Fault& fault : plan.faults) {
    if (fault.kind == Kind::kNoise) {
      faults.seed = plan.seed;
      faults.ns = plan.deadline_ns / 20;
      for (std::uint32_t kind = 0; kind < kNoiseKinds; ++kind) {
        faults.chance[kind] = static_cast<double>(fault.ppm) * 1e-6 / kNoiseKinds;
      }
    }
    if (!is_of_message(fault.kind) || fault.node != node) continue;
    faults.script.push_back({static_cast<fault::Kind>(fault.kind),
                             link_to(schedule, node, fault.peer), fault.message, fault.ns,
                             fault.bit, 0});
  }
  return faults;
}

bool has_faults(const fault::Faults& faults) {
  return !faults.script.empty() ||
         std::any_of(faults.chance, faults.chance + kNoiseKinds, [](double c) { return c > 0; });
}

bool has_noise(const fault::FaultEndpoint& endpoint) {
  for (std::uint32_t kind = 0; kind < kNoiseKinds; ++kind) {
    if (endpoint.struck(static_cast<fault::Kind>(kind)) > 0) return true;
  }
  return false;
}

}  // namespace espalier::storm

#pragma once
// How far a node gets ahead of its own blocks: the basis of sim::Residence.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "espalier/internal/hal/sim/traffic.h"

namespace espalier::sim {

class ResidenceTimes {
 public:
  static constexpr std::int32_t kUnknown = -1;

  // Begins a collective whose blocks are received `flight` steps after the step of their send.
  void begin(std::uint32_t nodes, std::int32_t flight) {
    furthest_.assign(nodes, -1);
    flight_ = flight;
  }
  [[nodiscard]] bool begun() const { return !furthest_.empty(); }

  // The furthest step of which the node has begun to send or has received something; -1: none yet.
  [[nodiscard]] std::int32_t furthest(std::uint32_t node) const { return furthest_[node]; }
  // leaves: a block that the schedule sends in step `planned` (or kUnknown) begins to leave the
  // node. The node's furthest step was `furthest` when the block was posted. arrives: the block has
  // arrived at the node, which awaits it.
  void leaves(std::uint32_t channel, std::uint32_t node, std::int32_t planned,
              std::int32_t furthest) {
    if (planned == kUnknown || !begun()) return;
    const std::int32_t due = std::max(furthest, planned);
    add(channel, static_cast<std::uint32_t>(std::max(0, furthest_[node] - due)));
    furthest_[node] = std::max(furthest_[node], planned);
  }
  void arrives(std::uint32_t node, std::int32_t planned) {
    if (planned == kUnknown || !begun()) return;
    furthest_[node] = std::max(furthest_[node], planned + flight_);
  }
  void add(std::uint32_t channel, std::uint32_t steps) {
    if (steps >= blocks.size()) {
      blocks.resize(steps + 1);
      longest_channel = channel;
    }
    ++blocks[steps];
  }

  std::vector<std::uint64_t> blocks;  // Residence::blocks
  std::uint32_t longest_channel = 0;

 private:
  std::vector<std::int32_t> furthest_;  // by node
  std::int32_t flight_ = 0;
};

}  // namespace espalier::sim

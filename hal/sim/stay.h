#pragma once
// How far a node gets ahead of its own blocks: what becomes sim::Residence.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hal/sim/traffic.h"

namespace espalier::sim {

class Stays {
 public:
  // The steps in which the channel's next messages, from number `first` on, are sent and received.
  struct Foreseen {
    std::uint64_t first = 0;
    std::vector<std::int32_t> sent;
    std::int32_t flight = 0;  // received so many steps later
  };
  void foresee(std::uint32_t channels, std::uint32_t nodes) {
    foreseen_.assign(channels, {});
    furthest_.assign(nodes, -1);
  }
  [[nodiscard]] Foreseen& of(std::uint32_t channel) { return foreseen_[channel]; }

  // The furthest step of which the node has begun to send or has received something; -1: none yet.
  [[nodiscard]] std::int32_t furthest(std::uint32_t node) const {
    return furthest_.empty() ? -1 : furthest_[node];
  }
  // A message begins to leave the node, which had got as far as `furthest` when it was posted; it
  // has come to the node, which awaits it.
  void leaves(std::uint32_t channel, std::uint32_t node, std::uint64_t message,
              std::int32_t furthest) {
    const std::int32_t* step = find(channel, message);
    if (step == nullptr) return;
    const std::int32_t due = std::max(furthest, *step);
    add(channel, static_cast<std::uint32_t>(std::max(0, furthest_[node] - due)));
    furthest_[node] = std::max(furthest_[node], *step);
  }
  void comes(std::uint32_t channel, std::uint32_t node, std::uint64_t message) {
    const std::int32_t* step = find(channel, message);
    if (step == nullptr) return;
    furthest_[node] = std::max(furthest_[node], *step + foreseen_[channel].flight);
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
  [[nodiscard]] const std::int32_t* find(std::uint32_t channel, std::uint64_t message) const {
    if (foreseen_.empty()) return nullptr;
    const Foreseen& its = foreseen_[channel];
    const std::uint64_t at = message - its.first;
    return at < its.sent.size() ? &its.sent[at] : nullptr;
  }

  std::vector<Foreseen> foreseen_;      // by channel
  std::vector<std::int32_t> furthest_;  // by node
};

}  // namespace espalier::sim

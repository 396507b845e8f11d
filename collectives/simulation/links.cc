#include <algorithm>

#include "espalier/collectives/simulation/run.h"

namespace espalier::sim {

std::vector<std::vector<std::uint32_t>> links_of(const std::vector<const Program*>& programs) {
  LinkCollector links;
  for (std::uint32_t v = 0; v < programs.size(); ++v) {
    if (programs[v] != nullptr) links.add(v, *programs[v]);
  }
  return links.links(static_cast<std::uint32_t>(programs.size()));
}

void LinkCollector::add(std::uint32_t node, const Program& program) {
  for (std::uint32_t i = 0; i < links_count(program); ++i) {
    const std::uint32_t peer = peer_of(program, i);
    pairs_.push_back(std::uint64_t{node} << 32 | peer);
    pairs_.push_back(std::uint64_t{peer} << 32 | node);
  }
}

std::vector<std::vector<std::uint32_t>> LinkCollector::links(std::uint32_t nodes) {
  std::sort(pairs_.begin(), pairs_.end());
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
  std::vector<std::vector<std::uint32_t>> peers(nodes);
  for (auto first = pairs_.begin(); first != pairs_.end();) {
    const auto node = static_cast<std::uint32_t>(*first >> 32);
    const auto end = std::find_if(first, pairs_.end(),
                                  [node](std::uint64_t pair) { return pair >> 32 != node; });
    if (node < nodes) peers[node].reserve(static_cast<std::size_t>(end - first));
    for (; first != end; ++first) {
      const auto peer = static_cast<std::uint32_t>(*first);
      // A peer outside the nodes is left out; the machine's start() then returns kNoSuchPeer.
      if (node < nodes && peer < nodes) peers[node].push_back(peer);
    }
  }
  return peers;
}

}  // namespace espalier::sim

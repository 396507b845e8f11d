#include "collectives/lower/neighbours.h"

namespace espalier::lower {

std::optional<Stranger> find_stranger(const topology::Topology& topology,
                                      const Programs& programs) {
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    const Program& program = programs[node];
    for (std::uint32_t link = 0; link < links_count(program); ++link) {
      const std::uint32_t peer = peer_of(program, link);
      const bool there = node < topology.nodes() && peer < topology.nodes();
      if (there && (topology.capacity(node, peer) > 0 || topology.capacity(peer, node) > 0)) {
        continue;
      }
      return Stranger{node, peer};
    }
  }
  return std::nullopt;
}

}  // namespace espalier::lower

#include "collectives/lower/neighbours.h"

#include <algorithm>

#include "collectives/schedule/expand.h"

namespace espalier::lower {
namespace {

// An N >= `least` that the program has; 1 if its messages are never cut.
std::int64_t blocks_of(const Program& program, std::int64_t least) {
  const bool cuts = std::any_of(program.blocks, program.blocks + program.blocks_count,
                                [](const BlockRule& rule) { return rule.block_bytes != 0; });
  const std::int64_t blocks = cuts ? least : 1;
  const std::int64_t mod = std::max<std::int64_t>(1, program.residue_mod);
  return blocks + ((program.residue - blocks) % mod + mod) % mod;
}

// Finds the first peer to or from which a message goes for which the topology has no link in that
// direction. Small N and a large one are tried; the verifier proves all N.
std::optional<std::uint32_t> find_against(const topology::Topology& topology,
                                          const Program& program, std::uint32_t node) {
  constexpr std::int64_t kManyBlocks = 64;
  for (const std::int64_t least : {std::int64_t{1}, kManyBlocks}) {
    for (const Instance& one : expand(program, blocks_of(program, least))) {
      const bool sends = one.kind == ActionKind::kSend;
      if ((!sends && one.kind != ActionKind::kReceive) || one.peer < 0) continue;
      const auto peer = static_cast<std::uint32_t>(one.peer);
      if (topology.capacity(sends ? node : peer, sends ? peer : node) == 0) return peer;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Stranger> find_stranger(const topology::Topology& topology,
                                      const Programs& programs) {
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    const Program& program = programs[node];
    bool is_one_way = false;
    for (std::uint32_t link = 0; link < links_count(program); ++link) {
      const std::uint32_t peer = peer_of(program, link);
      const bool there = node < topology.nodes() && peer < topology.nodes();
      const bool out = there && topology.capacity(node, peer) > 0;
      const bool in = there && topology.capacity(peer, node) > 0;
      if (!out && !in) return Stranger{node, peer};
      is_one_way = is_one_way || out != in;
    }
    if (!is_one_way) continue;
    if (const auto peer = find_against(topology, program, node)) return Stranger{node, *peer};
  }
  return std::nullopt;
}

}  // namespace espalier::lower

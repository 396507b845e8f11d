#include "collectives/verify/properties/program_facts.h"

#include <algorithm>

#include "espalier/base/arithmetic.h"

namespace espalier::verify {

std::int64_t next_blocks(const Program& program, std::int64_t blocks) {
  const std::int64_t mod = std::max<std::int64_t>(1, program.residue_mod);
  return blocks + floor_mod(program.residue - blocks, mod);
}

bool cuts_messages(const Program& program) {
  bool cuts = false;
  for (std::uint32_t rule = 0; rule < program.blocks_count; ++rule) {
    cuts = cuts || program.blocks[rule].block_bytes != 0;
  }
  return cuts;
}

bool has_operator(Collective collective) {
  switch (collective) {
    case Collective::kReduce:
    case Collective::kAllreduce:
    case Collective::kScan:
    case Collective::kExscan:
    case Collective::kReduceScatter:
    case Collective::kBarrier: return true;
    default: return false;
  }
}

bool only_neighbours(const topology::Topology& topology, const Program& program) {
  for (std::uint32_t link = 0; link < links_count(program); ++link) {
    const std::uint32_t peer = peer_of(program, link);
    if (topology.capacity(program.node, peer) == 0 || topology.capacity(peer, program.node) == 0) {
      return false;
    }
  }
  return true;
}

void add_facts(const topology::Topology& topology, const Program& program, BoundFacts& facts) {
  facts.neighbours = facts.neighbours && only_neighbours(topology, program);
  for (std::uint32_t k = 0; k < program.actions_count; ++k) {
    const Action& action = program.actions[k];
    facts.segment_count = std::max({facts.segment_count, std::int64_t{action.into.segment_count},
                                    std::int64_t{action.a.segment_count}});
    const bool passes = action.kind == ActionKind::kSend && action.a.buffer != Buffer::kInput;
    facts.direct = facts.direct && !passes;
  }
}

}  // namespace espalier::verify

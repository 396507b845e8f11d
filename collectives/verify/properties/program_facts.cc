#include "collectives/verify/properties/program_facts.h"

#include <algorithm>

#include "collectives/verify/properties/repeat.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::verify {
namespace {

constexpr std::int64_t kMaxLinksNamed = 4096;  // of one action, in turn
constexpr std::int64_t kAnyInstances = std::int64_t{1} << 31;

// How the links of the program's node lead to its peers.
enum class Ways : std::uint8_t { kBoth, kSomeOne, kSomeNone };
Ways ways_of(const topology::Topology& topology, const Program& program) {
  Ways ways = Ways::kBoth;
  for (std::uint32_t link = 0; link < links_count(program); ++link) {
    const std::uint32_t peer = peer_of(program, link);
    const bool out = topology.capacity(program.node, peer) > 0;
    const bool in = topology.capacity(peer, program.node) > 0;
    if (!out && !in) return Ways::kSomeNone;
    if (out != in) ways = Ways::kSomeOne;
  }
  return ways;
}

// Whether each message of the action goes the way of its link. Links of instances that never exist
// count, too.
bool goes_along(const topology::Topology& topology, const Program& program, const Action& action) {
  const bool send = action.kind == ActionKind::kSend;
  if (!send && action.kind != ActionKind::kReceive) return true;
  const Index& index = program.indices[action.link_ref];
  const Repeat links = repeat_of(program, index);
  if (links.every < 1 || links.every > kMaxLinksNamed || links.add != 0 ||
      !is_exact(program, index, kAnyInstances)) {
    return false;
  }
  for (std::int64_t i = 0; i < links.every; ++i) {
    const std::int64_t link = index_value(program, action.link_ref, i);
    if (link < 0 || link >= links_count(program)) continue;
    const std::uint32_t peer = peer_of(program, static_cast<std::uint32_t>(link));
    if (topology.capacity(send ? program.node : peer, send ? peer : program.node) == 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

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
  switch (collective.value()) {
    case Collective::kReduce:
    case Collective::kAllreduce:
    case Collective::kScan:
    case Collective::kExscan:
    case Collective::kReduceScatter:
    case Collective::kBarrier: return true;
    default: return false;
  }
}

bool is_absent_link(const topology::Topology& topology, const Program& program, std::uint32_t from,
                    std::uint32_t to) {
  return is_hop_by_hop(program) && topology.capacity(from, to) == 0;
}

bool only_neighbours(const topology::Topology& topology, const Program& program) {
  if (is_hop_by_hop(program)) return true;  // is_absent_link() refuses every other message
  const Ways ways = ways_of(topology, program);
  if (ways != Ways::kSomeOne) return ways == Ways::kBoth;
  return std::all_of(program.actions, program.actions + program.actions_count,
                     [&](const Action& action) { return goes_along(topology, program, action); });
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

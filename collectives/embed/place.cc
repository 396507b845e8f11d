#include "espalier/collectives/embed/place.h"

#include <iterator>
#include <utility>

namespace espalier::embed {
namespace {

bool is_identity(std::span<const std::uint32_t> node_of) {
  for (std::uint32_t rank = 0; rank < node_of.size(); ++rank) {
    if (node_of[rank] != rank) return false;
  }
  return true;
}

bool combines(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kAllreduce;
}

}  // namespace

Result<void> check_placeable(Collective collective) {
  if (counts_per_rank(collective)) return fail("each part belongs to a rank");
  if (collective == Collective::kScan || collective == Collective::kExscan) {
    return fail("a scan goes by the order of ranks");
  }
  return {};
}

Status place(std::span<const std::uint32_t> node_of, Program& program) {
  if (is_identity(node_of)) return Status::kOk;
  if (!check_placeable(program.collective)) return Status::kUnsupported;
  const std::uint32_t links = links_count(program);
  if (links > std::size(program.peers)) return Status::kTooLarge;
  for (std::uint32_t link = 0; link < links; ++link) {
    program.peers[link] = node_of[peer_of(program, link)];
  }
  program.peers_count = static_cast<decltype(program.peers_count)>(links);
  program.ring_peers = 0;
  program.node = node_of[program.node];
  if (has_root(program.collective)) program.root = node_of[program.root];
  if (combines(program.collective)) program.needs_commutative = true;
  program.contention = ContentionGuarantee::kSlot;
  return Status::kOk;
}

Status place_all(std::span<const std::uint32_t> node_of, Programs& programs) {
  Programs placed(programs.size());
  for (OwnedProgram program : programs) {
    const Status status = place(node_of, program);
    if (status != Status::kOk) return status;
    placed[program.node] = std::move(program);
  }
  programs = std::move(placed);
  return Status::kOk;
}

}  // namespace espalier::embed

#include <algorithm>
#include <tuple>

#include "tests/mutation/formulas.h"
#include "tests/mutation/interpreter.h"

namespace espalier::mutation {
namespace {

constexpr std::int64_t kFarPace = std::int64_t{1} << 32;
// Maximum number of instances of an action with a pace; no action that ends has more.
constexpr std::int64_t kMaxInstances = 1 << 16;

Spot spot_at(const espalier_Program& program, const espalier_Action& action, bool has,
             const espalier_Operand& place, std::int64_t i, std::int64_t blocks) {
  Spot spot;
  if (!has) return spot;
  spot.buffer = place.buffer;
  spot.segment = index_at(program, place.segment_ref, i);
  spot.block = index_at(program, place.block_ref, i);
  if (action.clamp && spot.block >= blocks) spot.block = blocks - 1;
  spot.segment_count = std::max<std::int64_t>(1, place.segment_count);
  if (place.buffer == Buffer::kScratch) {
    spot.slot = index_at(program, place.slot_ref, i);
    const std::int64_t after = spot.segment - program.node;
    if (program.required_features & 1)
      spot.after_own = after < 0 ? after + program.segments : after;
  }
  return spot;
}

void unroll_action(const espalier_Program& program, const espalier_Phase& phase, std::uint32_t at,
                   std::int64_t first, std::int64_t steps, std::int64_t blocks, Part& part) {
  const espalier_Action& action = program.actions[at];
  const std::int64_t start = count_at(program.counts[action.t0_ref], blocks);
  const std::int64_t many = count_at(program.counts[action.instances_ref], blocks);
  const bool transfer = action.kind == ActionKind::kSend || action.kind == ActionKind::kReceive;
  const bool paced = action.pace_ref != 0;
  std::int64_t earliest = 0, in_step = 0;
  const std::int64_t first_inside = std::max<std::int64_t>(0, -down(start, phase.period));
  for (std::int64_t i = paced ? 0 : first_inside; i < many && part.keeps_pace; ++i) {
    // A pace outside these steps leaves any phase.
    const std::int64_t pace =
        paced ? std::clamp(index_at(program, action.pace_ref, i), -kFarPace, kFarPace) : i;
    const std::int64_t step = start + pace * phase.period;
    if (step >= steps && !paced) break;
    // The rule binds instances that do not exist, too: a machine steps through all of them.
    part.keeps_pace = !paced || (step >= earliest && step < steps && i < kMaxInstances);
    in_step = step == earliest ? in_step + 1 : 1;
    if (paced && !transfer && in_step > 255) part.keeps_pace = false;
    earliest = step;
    if (step < 0 || step >= steps) continue;
    const bool send = action.kind == ActionKind::kSend;
    const std::int64_t block =
        index_at(program, send ? action.a.block_ref : action.into.block_ref, i);
    if (block < 0 || (block >= blocks && !action.clamp)) continue;
    Move move;
    move.step = first + step;
    move.kind = action.kind;
    move.after = action.after;
    if (transfer) {
      const std::int64_t link = index_at(program, action.link_ref, i);
      const bool ring = program.ring_peers > 0;
      if (link >= 0 && link < (ring ? program.ring_peers : program.peers_count)) {
        move.peer = ring ? (program.node + 1 + link) % program.ranks : program.peers[link];
      }
    }
    move.into = spot_at(program, action, action.has_into, action.into, i, blocks);
    move.a = spot_at(program, action, action.has_a, action.a, i, blocks);
    move.b = spot_at(program, action, action.has_b, action.b, i, blocks);
    part.moves.push_back(move);
  }
}

// Sends, receives, operations.
int rank_in_step(const Move& move) {
  if (move.kind == ActionKind::kSend) return 0;
  return move.kind == ActionKind::kReceive ? 1 : 2;
}
std::int64_t transfer_peer(const Move& move) { return rank_in_step(move) < 2 ? move.peer : 0; }

Part unroll_part(const espalier_Program& program, std::int64_t blocks) {
  Part part;
  part.window = program.window;
  part.scratch = program.scratch_blocks;
  part.claimed = count_at(program.counts[program.steps_ref], blocks);
  std::int64_t first = 0;
  std::uint32_t action = 0;
  for (std::uint32_t k = 0; k < program.phases_count; ++k) {
    const espalier_Phase& phase = program.phases[k];
    const std::int64_t steps =
        std::max<std::int64_t>(0, count_at(program.counts[phase.steps_ref], blocks));
    for (std::uint32_t n = 0; n < phase.actions; ++n) {
      unroll_action(program, phase, action++, first, steps, blocks, part);
    }
    first += steps;
    part.phase_ends.push_back(first);
  }
  // Moves were added in the order of their actions, which is also the order of a step's operations.
  std::stable_sort(part.moves.begin(), part.moves.end(), [](const Move& a, const Move& b) {
    return std::tuple(a.step, rank_in_step(a), transfer_peer(a)) <
           std::tuple(b.step, rank_in_step(b), transfer_peer(b));
  });
  return part;
}

}  // namespace

Play unroll(const topology::Topology& topology, const Programs& programs, std::int64_t blocks) {
  const espalier_Program& first = programs.front();
  Play play = {contract_of(first), blocks, {}, {}};
  for (const topology::Link& link : topology.links()) {
    play.lanes[{link.from, link.to}] = link.capacity;
  }
  const std::size_t nodes = first.nodes == 0 ? first.ranks : first.nodes;
  for (std::size_t node = 0; node < std::min(nodes, programs.size()); ++node) {
    play.parts.push_back(unroll_part(programs[node], blocks));
  }
  return play;
}

bool same_course(const Play& a, const Play& b) {
  const auto same = [](const Part& x, const Part& y) {
    return x.window == y.window && x.phase_ends == y.phase_ends && x.moves == y.moves;
  };
  return a.blocks == b.blocks && a.segments == b.segments && a.root == b.root &&
         a.collective == b.collective && a.ordered == b.ordered && a.ranks == b.ranks &&
         a.send_ticks == b.send_ticks && a.latency_ticks == b.latency_ticks &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(), same);
}

}  // namespace espalier::mutation

#pragma once
// Test helper: small schedules written by hand. The verifier accepts them, and refuses them after a
// test breaks something in them.

#include <cstdint>
#include <vector>

#include "base/testing/results.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::verify {

inline constexpr Buffer kInput = Buffer::kInput;
inline constexpr Buffer kOutput = Buffer::kOutput;

// Writes one rank's program.
class ProgramBuilder {
 public:
  ProgramBuilder(const topology::Topology& topology, Collective collective, std::uint32_t node,
                 std::uint32_t window) {
    program.format_version = kFormatVersion;
    program.topology_digest = topology.digest();
    program.collective = collective;
    program.ranks = topology.ranks();
    program.node = node;
    program.window = window;
    program.segments = 1;
    program.port_model = PortModel::kOnePortDuplex;
    program.contention = ContentionGuarantee::kAsync;
    program.blocks_count = 1;
    program.blocks[0] = {0, 1024};
  }

  std::uint8_t count(std::int32_t a, std::int32_t b) {
    program.counts[program.counts_count] = {a, b, 0, 0, 0};
    return static_cast<std::uint8_t>(program.counts_count++);
  }
  std::uint8_t index(std::int32_t base, std::int32_t coef, std::uint32_t mod = 0) {
    program.indices[program.indices_count] = {base, coef, 0, 0, mod, 0, 0};
    return static_cast<std::uint8_t>(program.indices_count++);
  }
  // Block i of the segment in instance i.
  Operand operand(Buffer buffer, std::int32_t segment = 0) {
    return {buffer, index(segment, 0), index(0, 1), 0, 0};
  }
  Operand input() { return operand(Buffer::kInput); }
  Operand output() { return operand(Buffer::kOutput); }
  // Block i in slot first + i mod slots.
  Operand slot(std::int32_t first, std::uint32_t slots) {
    Operand scratch = operand(Buffer::kScratch);
    scratch.slot_ref = index(first, 1, slots);
    return scratch;
  }

  Action& act(ActionKind kind, std::int32_t t0) {
    Action& action = program.actions[program.actions_count++];
    action.kind = kind;
    action.t0_ref = count(t0, 0);
    action.instances_ref = count(0, 1);
    return action;
  }
  Action& send(std::int32_t t0, std::uint32_t peer, const Operand& from, std::uint16_t after = 0) {
    Action& action = act(ActionKind::kSend, t0);
    action.link_ref = link(peer);
    action.after = after;
    action.has_a = true;
    action.a = from;
    return action;
  }
  Action& receive(std::int32_t t0, std::uint32_t peer, const Operand& into) {
    Action& action = act(ActionKind::kReceive, t0);
    action.link_ref = link(peer);
    action.has_into = true;
    action.into = into;
    return action;
  }
  Action& combine(std::int32_t t0, const Operand& into, const Operand& left, const Operand& right) {
    Action& action = act(ActionKind::kCombine, t0);
    action.has_into = action.has_a = action.has_b = true;
    action.into = into;
    action.a = left;
    action.b = right;
    return action;
  }
  Action& copy(std::int32_t t0, const Operand& into, const Operand& from) {
    Action& action = act(ActionKind::kCopy, t0);
    action.has_into = action.has_a = true;
    action.into = into;
    action.a = from;
    return action;
  }
  // One phase of all actions so far, of a + b*N steps, claimed, with the lower bound `bound` + N.
  OwnedProgram finish(std::uint32_t period, std::int32_t a, std::int32_t b, std::int32_t bound) {
    program.phases_count = 1;
    program.phases[0] = {period, count(a, b), static_cast<std::uint8_t>(program.actions_count)};
    program.steps_ref = count(a, b);
    program.bound_ref = count(bound, 1);
    return program;
  }

  OwnedProgram program;

 private:
  // A peer that is named several times is one link.
  std::uint8_t link(std::uint32_t peer) {
    std::uint32_t position = 0;
    while (position < program.peers_count && program.peers[position] != peer) ++position;
    if (position == program.peers_count) program.peers[program.peers_count++] = peer;
    return index(static_cast<std::int32_t>(position), 0);
  }
};

// The arguments of ProgramBuilder::finish().
struct Claim {
  std::uint32_t period;
  std::int32_t a, b, bound;
};
// Returns the programs of all nodes; write(builder, me) adds the actions of node `me`.
template <typename Write>
std::vector<OwnedProgram> by_rank(const topology::Topology& topology, Collective collective,
                                  std::uint32_t window, const Claim& claim, const Write& write) {
  std::vector<OwnedProgram> programs;
  for (std::uint32_t me = 0; me < topology.nodes(); ++me) {
    ProgramBuilder builder(topology, collective, me, window);
    write(builder, me);
    programs.push_back(builder.finish(claim.period, claim.a, claim.b, claim.bound));
  }
  return programs;
}

// Broadcast from rank 0 along the chain 0, 1, 2, 3. The topology has no routers.
inline std::vector<OwnedProgram> chain_broadcast(const topology::Topology& topology) {
  const auto p = static_cast<std::int32_t>(topology.ranks());
  return by_rank(
      topology, Collective::kBroadcast, 4, {1, p - 2, 1, 1}, [&](auto& builder, auto me) {
        const auto step = static_cast<std::int32_t>(me);
        if (me > 0) builder.receive(step - 1, me - 1, builder.output());
        if (step + 1 < p) {
          builder.send(step, me + 1, me == 0 ? builder.input() : builder.output(), me == 0 ? 0 : 1);
        }
      });
}

// Reduce to rank 0 along the chain: each rank puts its own input before the data of the next rank.
// Actions of an inner rank: 0 receive, 1 combine, 2 send.
inline std::vector<OwnedProgram> chain_reduce(const topology::Topology& topology,
                                              std::uint32_t window, std::uint32_t slots) {
  const auto p = static_cast<std::int32_t>(topology.ranks());
  return by_rank(topology, Collective::kReduce, window, {1, p - 2, 1, 1},
                 [&](auto& builder, auto me) {
                   const auto rank = static_cast<std::int32_t>(me);
                   Operand sum = builder.input();
                   if (rank + 1 < p) {
                     const Operand slot = builder.slot(0, slots), own = sum;
                     builder.program.scratch_blocks = slots;
                     sum = me == 0 ? builder.output() : slot;
                     builder.receive(p - 2 - rank, me + 1, slot);
                     builder.combine(p - 2 - rank, sum, own, slot);
                   }
                   if (me > 0) builder.send(p - 1 - rank, me - 1, sum, rank + 1 < p ? 1 : 0);
                 });
}

}  // namespace espalier::verify

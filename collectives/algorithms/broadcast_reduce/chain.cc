// Broadcast, reduce and allreduce along a chain of all ranks: the best for very long messages.
//
// Steps: broadcast and reduce p-2+N, allreduce 2(p-2+N). Cost: steps * (alpha + beta*m/N). The
// minimum is at N = sqrt((p-2)*beta*m/alpha): beta*m + (p-2)*alpha + 2*sqrt((p-2)*alpha*beta*m).
// Source: [Sanders03] section 2 ("pipeline"; simulation agrees exactly).
//
// A reduce is the broadcast reversed in time. To rank 0 or p-1 the chain is in rank order, so
// operators need not be commutative. For other roots the chain takes the ranks from the root
// onward, cyclically.

#include "collectives/algorithms/rows.h"
#include "collectives/build/phases.h"

namespace espalier {
namespace {

// The position of this rank: `distance` links from the end where the data starts (broadcast) or
// ends (reduce), and its neighbours towards that end and away from it.
struct Position {
  std::uint32_t ranks, distance, nearer, farther;
};

Position from_root(const Member& member) {
  const std::uint32_t p = member.ranks, me = member.me;
  return {p, (me + p - member.root) % p, (me + p - 1) % p, (me + 1) % p};
}

void end_phase(Builder& builder, std::uint32_t ranks, const Turn& turn) {
  builder.phase(turn.turns, static_cast<std::int32_t>(ranks) - 2,
                static_cast<std::int32_t>(turn.turns));
}

// own_left: this rank's own data is the left operand, and data from farther away the right one.
void add_sums(Builder& builder, const Position& position, bool own_left, Buffer own_buffer,
              const Turn& turn) {
  const bool sink = position.distance == 0;
  const bool far_end = position.distance + 1 == position.ranks;
  Operand sum = Builder::operand(own_buffer, builder.constant(turn.segment));
  if (!far_end) {
    const std::uint32_t step = turn.number + position.ranks - 2 - position.distance;
    const Operand own = sum;
    const Operand slot = builder.slot(turn.segment, builder.ring(sink ? 0 : 1, turn.turns));
    sum = sink ? builder.output(turn.segment) : slot;
    builder.receive(step, position.farther, slot);
    builder.combine(step, sum, own_left ? own : slot, own_left ? slot : own);
  }
  if (!sink) {
    builder.send(turn.number + position.ranks - 1 - position.distance, position.nearer, sum,
                 far_end ? 0 : 1);
  }
}

}  // namespace

void add_chain_broadcast(Builder& builder, const Member& member, Buffer source_buffer,
                         const Turn& turn) {
  if (member.exists()) {
    const Position position = from_root(member);
    const bool source = position.distance == 0;
    if (!source) {
      builder.receive(turn.number + position.distance - 1, position.nearer,
                      builder.output(turn.segment));
    }
    if (position.distance + 1 < position.ranks) {
      const Buffer from = source ? source_buffer : Buffer::kOutput;
      builder.send(turn.number + position.distance, position.farther,
                   Builder::operand(from, builder.constant(turn.segment)), source ? 0 : 1);
    }
  }
  end_phase(builder, member.ranks, turn);
}

void add_chain_reduce(Builder& builder, const Member& member, Buffer own, const Turn& turn) {
  if (member.exists()) add_sums(builder, from_root(member), true, own, turn);
  end_phase(builder, member.ranks, turn);
}

namespace {

Status generate_chain(const CollectiveParameters& parameters, std::uint32_t me,
                      Collective collective, Program& out) {
  const std::uint32_t p = parameters.ranks;
  const bool reduces = collective == Collective::kReduce;
  const bool broadcasts = collective == Collective::kBroadcast;
  const std::uint32_t root = reduces || broadcasts ? parameters.root : 0;
  const bool to_last = reduces && root != 0 && root + 1 == p;
  Builder builder(out);
  const Status status = builder.begin(parameters, me,
                                      {.collective = collective,
                                       .algorithm = "chain",
                                       .needs_commutative = reduces && root != 0 && !to_last});
  if (status != Status::kOk) return status;
  if (p == 1) return builder.finish_alone();
  const Member member{p, root, me};
  if (to_last) {
    const Position position = {p, p - 1 - me, (me + 1) % p, (me + p - 1) % p};
    add_sums(builder, position, false, Buffer::kInput, {});
    end_phase(builder, p, Turn());
  } else if (!broadcasts) {
    add_chain_reduce(builder, member, Buffer::kInput);
  }
  if (!reduces) {
    add_chain_broadcast(builder, member, broadcasts ? Buffer::kInput : Buffer::kOutput);
  }
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kChainRows[] = {
    row("chain", Collective::kBroadcast, generate_chain,
        "one pipeline through all ranks: p-2+N steps", {.is_chain = true}),
    row("chain", Collective::kReduce, generate_chain, "one pipeline through all ranks: p-2+N steps",
        {.needs_commutative = true, .is_chain = true}),
    row("chain", Collective::kAllreduce, generate_chain,
        "reduce, then broadcast by chain: 2(p-2+N) steps", {.is_chain = true}),
};

}  // namespace espalier

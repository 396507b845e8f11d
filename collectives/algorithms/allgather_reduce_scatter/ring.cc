// Allgather, reduce-scatter and allreduce around the ring of all ranks: every rank sends only to
// the next one.
//
// Steps: (p-1)N for the first two, which is optimal for one port, because a rank must receive
// (send) this many blocks. Cost: (p-1)N * (alpha + beta*m/N), where m is the bytes of one rank's
// part. N = 1 is cheapest; smaller blocks limit the scratch of a reduce-scatter. Folklore
// ("bucket"). kTooLarge above 2^20 + 1 ranks.
//
// The allreduce cuts the message into one segment per rank: a reduce-scatter of the segments, then
// an allgather. Steps: 2(p-1)N. Cost: 2(p-1)N * alpha + 2(p-1)/p * beta*m, where m is the bytes of
// the message: the least traffic that an allreduce can have. Source: [PY09]. kTooLarge above
// 2^19 + 1 ranks.
//
// Step j of a round (rounds.h): in an allgather a rank sends the part of the rank j before it,
// beginning with its own. In a reduce-scatter it sends the partial sum for the owner j+1 before it.
// The sum of a part begins at the rank after its owner and travels around to the owner, so
// operators must be commutative.

#include "collectives/algorithms/build/builder.h"
#include "collectives/algorithms/build/rounds.h"
#include "espalier/collectives/algorithms/generators.h"

namespace espalier {
namespace {

void repeat(Action& action, std::uint8_t instances_ref, std::uint8_t block_ref) {
  action.instances_ref = instances_ref;
  action.into.block_ref = action.a.block_ref = action.b.block_ref = block_ref;
}

// `copies`: this rank's part is in INPUT; otherwise it is in OUTPUT already.
void add_allgather(Builder& builder, RankRounds rounds, std::uint32_t p, std::uint32_t me,
                   bool copies) {
  const std::uint8_t all = rounds.instances();
  const std::uint8_t block = rounds.block(p - 1);
  const std::uint8_t first = rounds.block(1);
  const Operand own = copies ? builder.input(me) : builder.output(me);
  const Operand from_before = Builder::operand(Buffer::kOutput, rounds.moving(-1, -1));
  // At the rounds' pace, so that one proof covers every N.
  if (copies) repeat(builder.copy(0, builder.output(me), own), all, first);
  repeat(builder.send(0, rounds.rank(1), own, 0), all, first);
  if (p > 2) {
    const std::uint8_t later = rounds.block(1, p - 1);
    const Operand passed_on = Builder::operand(Buffer::kOutput, rounds.moving(0, -1));
    repeat(builder.send(0, rounds.rank(1), passed_on, 1), all, later);
  }
  repeat(builder.receive(0, rounds.rank(-1), from_before), all, block);
}

void add_reduce_scatter(Builder& builder, RankRounds rounds, std::uint32_t p, std::uint32_t me) {
  const std::uint8_t all = rounds.instances();
  const Ring ring = builder.ring(p > 2 ? 1 : 0, 1);
  const std::uint8_t received = rounds.moving(-2, -1);
  Operand sum = builder.slot(0, ring);
  sum.segment_ref = received;
  const Operand own = Builder::operand(Buffer::kInput, received);
  const std::uint8_t first = rounds.block(1);
  repeat(builder.send(0, rounds.rank(1), builder.input(rounds.rank(-1)), 0), all, first);
  if (p > 2) {
    Operand last_sum = sum;  // of the previous step
    last_sum.segment_ref = rounds.moving(-1, -1);
    Index slot{};
    slot.base = static_cast<std::int32_t>(ring.first);
    slot.coef = 1;
    slot.off = -1;
    slot.mod = ring.slots;
    last_sum.slot_ref = builder.index(slot);
    const std::uint8_t later = rounds.block(1, p - 1);
    repeat(builder.send(0, rounds.rank(1), last_sum, 1), all, later);
  }
  // Each table row is added in a statement of its own: the compiler must not choose their order.
  const std::uint8_t block = rounds.block(p - 1);
  repeat(builder.receive(0, rounds.rank(-1), sum), all, block);
  if (p > 2) {
    const std::uint8_t inner = rounds.block(p - 2);
    repeat(builder.combine(0, sum, sum, own), all, inner);
  }
  const std::uint8_t last = rounds.block(p - 2, p - 1);
  repeat(builder.combine(0, builder.output(me), sum, own), all, last);
}

Status generate_ring(const CollectiveParameters& parameters, std::uint32_t me,
                     Collective collective, Program& out) {
  Builder builder(out);
  const bool reduces = collective != Collective::kAllgather;
  const std::uint32_t p = parameters.ranks;
  const Status status = builder.begin(parameters, me,
                                      {.collective = collective,
                                       .algorithm = "ring",
                                       .segments = p,
                                       .needs_commutative = reduces && p > 1});
  if (status != Status::kOk) return status;
  if (p == 1) return builder.finish_alone();
  RankRounds rounds(builder, p, me);
  if (collective == Collective::kAllgather) {
    add_allgather(builder, rounds, p, me, true);
    return rounds.finish();
  }
  add_reduce_scatter(builder, rounds, p, me);
  if (collective == Collective::kReduceScatter) return rounds.finish();
  rounds.end_phase();
  add_allgather(builder, rounds, p, me, false);
  rounds.end_phase();
  return builder.finish_one_port();
}

}  // namespace

Status ring_allgather(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  return generate_ring(parameters, me, Collective::kAllgather, out);
}

Status ring_reduce_scatter(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  return generate_ring(parameters, me, Collective::kReduceScatter, out);
}

Status ring_allreduce(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  return generate_ring(parameters, me, Collective::kAllreduce, out);
}

}  // namespace espalier

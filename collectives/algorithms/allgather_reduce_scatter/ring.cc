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

#include "collectives/algorithms/rows.h"
#include "collectives/build/phases.h"

namespace espalier {
namespace {

void repeat(Action& action, std::uint8_t instances_ref, std::uint8_t block_ref) {
  action.instances_ref = instances_ref;
  action.into.block_ref = action.a.block_ref = action.b.block_ref = block_ref;
}

}  // namespace

void add_ring_allgather(Builder& builder, RankRounds rounds, Buffer own_buffer, const Turn& turn) {
  const std::uint32_t p = rounds.ranks(), t0 = turn.number;
  const std::uint8_t all = rounds.instances();
  const std::uint8_t block = rounds.block(p - 1);
  const std::uint8_t first = rounds.block(1);
  const std::uint8_t own_segment = builder.constant(rounds.own_segment());
  const Operand own = Builder::operand(own_buffer, own_segment);
  const Operand from_before = Builder::operand(Buffer::kOutput, rounds.moving(-1, -1));
  if (own_buffer != Buffer::kOutput) {
    // At the rounds' pace, so that one proof covers every N.
    repeat(builder.copy(t0, Builder::operand(Buffer::kOutput, own_segment), own), all, first);
  }
  repeat(builder.send(t0, rounds.rank(1), own, 0), all, first);
  if (p > 2) {
    const std::uint8_t later = rounds.block(1, p - 1);
    const Operand passed_on = Builder::operand(Buffer::kOutput, rounds.moving(0, -1));
    repeat(builder.send(t0, rounds.rank(1), passed_on, turn.turns), all, later);
  }
  repeat(builder.receive(t0, rounds.rank(-1), from_before), all, block);
  rounds.end_phase(turn.turns);
}

Operand OwnSums::moving(RankRounds& rounds, std::int32_t places) const {
  Operand operand = Builder::operand(buffer, rounds.moving(places, -1));
  if (buffer == Buffer::kScratch) operand.slot_ref = rounds.moving(places, -1, {first_slot, 1});
  return operand;
}

Operand OwnSums::of_previous(Builder& builder, const RankRounds& rounds) const {
  const std::uint32_t rank = rounds.rank(-1);
  Operand operand = Builder::operand(buffer, builder.constant(rounds.segments().rank(rank)));
  if (buffer == Buffer::kScratch) operand.slot_ref = builder.constant(first_slot + rank);
  return operand;
}

namespace {

// The sums that arrive, in a ring of slots.
class ArrivingSums {
 public:
  ArrivingSums(Builder& builder, RankRounds& rounds, const Turn& turn)
      : builder_(builder),
        rounds_(rounds),
        ring_(builder.ring(rounds.ranks() > 2 ? turn.turns : 0, turn.turns)) {}

  // The sum that this step receives.
  [[nodiscard]] Operand received() {
    const std::uint8_t segment_ref = rounds_.moving(-2, -1);
    return slot(segment_ref, builder_.slot(0, ring_).slot_ref);
  }
  // The sum that the previous step received.
  [[nodiscard]] Operand sent() {
    const std::uint8_t segment_ref = rounds_.moving(-1, -1);
    Index row{};
    row.base = static_cast<std::int32_t>(ring_.first);
    row.coef = 1;
    row.off = -1;
    row.mod = ring_.slots;
    return slot(segment_ref, builder_.index(row));
  }

 private:
  [[nodiscard]] Operand slot(std::uint8_t segment_ref, std::uint8_t slot_ref) const {
    Operand operand = Builder::operand(Buffer::kScratch, segment_ref);
    operand.slot_ref = slot_ref;
    return operand;
  }

  Builder& builder_;
  RankRounds& rounds_;
  Ring ring_;
};

}  // namespace

void add_ring_reduce_scatter(Builder& builder, RankRounds rounds, const OwnSums& sums,
                             const Turn& turn) {
  const std::uint32_t p = rounds.ranks(), t0 = turn.number;
  const std::uint8_t all = rounds.instances();
  ArrivingSums arriving(builder, rounds, turn);
  const Operand sum = arriving.received();
  const Operand own = sums.moving(rounds, -2);
  const std::uint8_t first = rounds.block(1);
  repeat(builder.send(t0, rounds.rank(1), sums.of_previous(builder, rounds), 0), all, first);
  if (p > 2) {
    const Operand last_sum = arriving.sent();
    const std::uint8_t later = rounds.block(1, p - 1);
    repeat(builder.send(t0, rounds.rank(1), last_sum, turn.turns), all, later);
  }
  // Each table row is added in a statement of its own: the compiler must not choose their order.
  const std::uint8_t block = rounds.block(p - 1);
  repeat(builder.receive(t0, rounds.rank(-1), sum), all, block);
  if (p > 2) {
    const std::uint8_t inner = rounds.block(p - 2);
    repeat(builder.combine(t0, sum, sum, own), all, inner);
  }
  const std::uint8_t last = rounds.block(p - 2, p - 1);
  repeat(builder.combine(t0, builder.output(rounds.own_segment()), sum, own), all, last);
  rounds.end_phase(turn.turns);
}

namespace {

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
  const RankRounds rounds(builder, p, me);
  if (reduces) {
    add_ring_reduce_scatter(builder, rounds, {Buffer::kInput});
  } else {
    add_ring_allgather(builder, rounds, Buffer::kInput);
  }
  if (collective != Collective::kAllreduce) {
    return builder.finish(0, static_cast<std::int32_t>(p - 1));
  }
  add_ring_allgather(builder, rounds, Buffer::kOutput);
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kRingRows[] = {
    row("ring", Collective::kAllgather, generate_ring, "every part round the ring: (p-1)N steps"),
    row("ring", Collective::kReduceScatter, generate_ring,
        "every part's sum round the ring to its owner: (p-1)N steps", {.needs_commutative = true}),
};

const Algorithm kRingAllreduceRows[] = {
    row("ring", Collective::kAllreduce, generate_ring,
        "reduce-scatter, then allgather by ring: 2(p-1)N steps",
        {.needs_commutative = true, .is_chain = true}),
};

}  // namespace espalier

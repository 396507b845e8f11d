// Broadcast by a scatter and an allgather, for long messages: a binomial scatter of p segments
// (knomial_scatter.cc), and then a ring (ring.cc).
//
// Steps: ceil(log2 p) + p-1, N = 1. Cost: (ceil(log2 p) + p-1) * alpha + 2 (p-1)/p * beta*m,
// because the cost of a step is its longest message. Source: [Barnett94], long vectors. Pipelined
// trees and chains are faster at long messages: beta*m. This needs no block size, and few messages.
//
// Every rank but the root receives the segments of its interval straight into OUTPUT. In step j of
// the ring a rank passes on the segment of the rank j before it. No rank sends to the root, which
// has the whole message. p is at most 2 * 65535, twice the maximum number of segments per message;
// kTooLarge above.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/interval_tree.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxScatteredRanks = 2 * 65535;

void scatter_segments(Builder& builder, const IntervalTree& tree, const Given& given) {
  const auto segments = [&](const Interval& of) {
    Operand operand = given.root ? builder.input(of.first) : builder.output(of.first);
    operand.segment_count = static_cast<std::uint16_t>(of.size == 1 ? 0 : of.size);
    return operand;
  };
  if (!given.root) builder.receive(given.tick, given.from, segments(given.interval));
  tree.for_each_part(given, [&](const Interval& part, std::uint32_t tick) {
    builder.send(tick, part.leader, segments(part), given.root ? 0 : tick - given.tick);
  });
  builder.phase(1, static_cast<std::int32_t>(tree.steps()), 0);
}

void gather_segments(Builder& builder, std::uint32_t p, std::uint32_t root, std::uint32_t me) {
  const std::uint8_t block = builder.constant(0);
  // The segment of the rank `places` + i before this one, in instance i.
  const auto moving = [&](Buffer::Value buffer, std::uint32_t places) {
    Index row{};
    row.coef = -1;
    row.off = static_cast<std::int32_t>((me + p - places) % p);
    row.mod = p;
    Operand operand = Builder::operand(buffer, builder.index(row));
    operand.block_ref = block;
    return operand;
  };
  const std::uint32_t after = (me + 1) % p, before = (me + p - 1) % p;
  const auto steps = static_cast<std::int32_t>(p - 1);
  const std::uint8_t all = builder.count(steps, 0);
  if (me == root) {
    builder.send(0, after, moving(Buffer::kInput, 0), 0).instances_ref = all;
  } else {
    if (after != root) {
      Operand own = builder.output(me);
      own.block_ref = block;
      builder.send(0, after, own, 0).instances_ref = builder.count(1, 0);
      const std::uint8_t others = builder.count(steps - 1, 0);
      builder.send(1, after, moving(Buffer::kOutput, 1), 1).instances_ref = others;
    }
    builder.receive(0, before, moving(Buffer::kOutput, 1)).instances_ref = all;
  }
  builder.phase(1, steps, 0);
}

Status scatter_allgather_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                   Collective, Program& out) {
  Builder builder(out);
  const std::uint32_t p = parameters.ranks;
  const Status status = builder.begin(parameters, me,
                                      {.collective = Collective::kBroadcast,
                                       .algorithm = "scatter-allgather",
                                       .segments = p,
                                       .one_block = true});
  if (status != Status::kOk) return status;
  if (p == 1) return builder.finish_alone();
  if (p > kMaxScatteredRanks) return builder.refuse(Status::kTooLarge);
  const IntervalTree tree(p, parameters.root, 2, 1, 1);
  scatter_segments(builder, tree, tree.given_to(me));
  gather_segments(builder, p, parameters.root, me);
  return builder.finish(static_cast<std::int32_t>(log2_ceil(p)), 0);
}

}  // namespace

const Algorithm kScatterAllgatherRows[] = {
    row("scatter-allgather", Collective::kBroadcast, scatter_allgather_broadcast,
        "p segments scattered by a binomial tree, then round the ring: ceil(log2 p)+p-1 steps"),
};

}  // namespace espalier

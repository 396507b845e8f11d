// Broadcast, reduce and allreduce along a chain of all ranks: the best for very long messages.
//
// Steps: broadcast and reduce p-2+N, allreduce 2(p-2+N). Cost: steps * (alpha + beta*m/N). The
// minimum is at N = sqrt((p-2)*beta*m/alpha): beta*m + (p-2)*alpha + 2*sqrt((p-2)*alpha*beta*m).
// Source: [Sanders03] section 2 ("pipeline"; simulation agrees exactly).
//
// A reduce is the broadcast reversed in time. To rank 0 or p-1 the chain is in rank order, so
// operators need not be commutative. For other roots the chain takes the ranks from the root
// onward, cyclically.

#include "collectives/algorithms/build/builder.h"
#include "espalier/collectives/algorithms/generators.h"

namespace espalier {
namespace {

// The position of this rank: `distance` links from the end where the data starts (broadcast) or
// ends (reduce), and its neighbours towards that end and away from it.
struct Position {
  std::uint32_t ranks, distance, nearer, farther;
};

Position from_root(std::uint32_t p, std::uint32_t root, std::uint32_t me) {
  return {p, (me + p - root) % p, (me + p - 1) % p, (me + 1) % p};
}

void add_broadcast(Builder& builder, const Position& position, bool from_output) {
  const bool source = position.distance == 0;
  if (!source) builder.receive(position.distance - 1, position.nearer, builder.output(0));
  if (position.distance + 1 < position.ranks) {
    const Operand from = source && !from_output ? builder.input(0) : builder.output(0);
    builder.send(position.distance, position.farther, from, source ? 0 : 1);
  }
  builder.phase(1, static_cast<std::int32_t>(position.ranks) - 2, 1);
}

// own_left: this rank's own data is the left operand, and data from farther away the right one.
void add_reduce(Builder& builder, const Position& position, bool own_left) {
  const bool sink = position.distance == 0;
  const bool far_end = position.distance + 1 == position.ranks;
  Operand sum = builder.input(0);
  if (!far_end) {
    const std::uint32_t step = position.ranks - 2 - position.distance;
    const Operand own = sum;
    const Operand slot = builder.slot(0, builder.ring(sink ? 0 : 1, 1));
    sum = sink ? builder.output(0) : slot;
    builder.receive(step, position.farther, slot);
    builder.combine(step, sum, own_left ? own : slot, own_left ? slot : own);
  }
  if (!sink)
    builder.send(position.ranks - 1 - position.distance, position.nearer, sum, far_end ? 0 : 1);
  builder.phase(1, static_cast<std::int32_t>(position.ranks) - 2, 1);
}

}  // namespace

Status chain_broadcast(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me, {.collective = Collective::kBroadcast, .algorithm = "chain"});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  add_broadcast(builder, from_root(parameters.ranks, parameters.root, me), false);
  return builder.finish_one_port();
}

Status chain_reduce(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  Builder builder(out);
  const std::uint32_t p = parameters.ranks;
  const bool to_last = parameters.root != 0 && parameters.root + 1 == p;
  const Status status = builder.begin(parameters, me,
                                      {.collective = Collective::kReduce,
                                       .algorithm = "chain",
                                       .needs_commutative = parameters.root != 0 && !to_last});
  if (status != Status::kOk) return status;
  if (p == 1) return builder.finish_alone();
  Position position = from_root(p, parameters.root, me);
  if (to_last) position = {p, p - 1 - me, (me + 1) % p, (me + p - 1) % p};
  add_reduce(builder, position, !to_last);
  return builder.finish_one_port();
}

Status chain_allreduce(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me, {.collective = Collective::kAllreduce, .algorithm = "chain"});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  const Position position = from_root(parameters.ranks, 0, me);
  add_reduce(builder, position, true);
  add_broadcast(builder, position, true);
  return builder.finish_one_port();
}

}  // namespace espalier

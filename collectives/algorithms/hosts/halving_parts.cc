// Scatter and gather of one block per rank over the binomial tree of host_halves.h, as phases. A
// gather's send waits for the receives of one step only, so the copies of the own part ensure that
// all receives are complete: there is one in each step of a receive, and copies run in order.

#include "collectives/algorithms/hosts/host_halves.h"
#include "collectives/build/phases.h"

namespace espalier {

Operand Parts::of(Builder& builder, std::uint32_t rank, std::uint32_t count) const {
  Operand operand = buffer;
  if (buffer.buffer == Buffer::kScratch) {
    operand = builder.slot(rank, {first_slot + rank - first_rank, 1});
  } else {
    operand.segment_ref = builder.constant(rank);
  }
  operand.segment_count = static_cast<std::uint16_t>(count == 1 ? 0 : count);
  return operand;
}

Parts Parts::in_scratch(Builder& builder, std::uint32_t first_rank, std::uint32_t ranks) {
  Operand buffer{};
  buffer.buffer = Buffer::kScratch;
  return {buffer, first_rank, builder.scratch(ranks)};
}

Parts add_halving_scatter(Builder& builder, const Member& member, const Share& share,
                          const Parts& source, const OwnPart& own) {
  Parts kept = source;
  if (member.exists()) {
    const HalvingTree tree(member.ranks, member.root, member.me);
    const RankInterval& given = tree.interval;
    if (!tree.root && given.size == 1 && share.size == 1) {
      builder.receive(tree.step, tree.from, own.operand);
    } else {
      const std::uint32_t first = share.rank(given.first), ranks = share.size * given.size;
      if (!tree.root) {
        kept = Parts::in_scratch(builder, first, ranks);
        builder.receive(tree.step, tree.from, kept.of(builder, first, ranks));
      }
      if (share.size == 1) builder.copy(tree.step, own.operand, kept.of(builder, own.rank, 1));
      RankInterval interval = given;
      for (std::uint32_t step = tree.first_send(); interval.size > 1; ++step) {
        const RankHalves halves = halve_ranks(interval);
        const RankInterval& half = halves.given;
        builder.send(step, half.first,
                     kept.of(builder, share.rank(half.first), share.size * half.size),
                     tree.root ? 0 : step - tree.step);
        interval = halves.kept;
      }
    }
  }
  builder.phase(1, static_cast<std::int32_t>(log2_ceil(member.ranks)), 0);
  return kept;
}

namespace {

// Adds the receives of a gather. Returns their number.
std::uint32_t add_halves(Builder& builder, const HalvingTree& tree, const Share& share,
                         const Parts& kept) {
  const std::uint32_t last = tree.steps - 1;
  std::uint32_t receives = 0;
  for (RankInterval interval = tree.interval; interval.size > 1; ++receives) {
    const RankHalves halves = halve_ranks(interval);
    const RankInterval& half = halves.given;
    builder.receive(last - tree.first_send() - receives, half.first,
                    kept.of(builder, share.rank(half.first), share.size * half.size));
    interval = halves.kept;
  }
  return receives;
}

void add_member_gather(Builder& builder, const Member& member, const Share& share,
                       const Parts& target, const OwnPart& own) {
  const HalvingTree tree(member.ranks, member.root, member.me);
  const RankInterval& given = tree.interval;
  const std::uint32_t send_step = tree.steps - 1 - tree.step;
  const bool is_whole = share.size == 1;
  if (!tree.root && given.size == 1 && is_whole) {
    builder.send(send_step, tree.from, own.operand, 0);
    return;
  }
  const std::uint32_t first = share.rank(given.first), ranks = share.size * given.size;
  Parts kept = target;
  if (!tree.root && is_whole) kept = Parts::in_scratch(builder, first, ranks);
  const std::uint32_t receives = add_halves(builder, tree, share, kept);
  const std::uint32_t copies = !tree.root ? receives : is_whole ? 1 : 0;
  if (copies > 0) {
    const std::uint8_t instances_ref = builder.count(static_cast<std::int32_t>(copies), 0);
    const std::uint8_t block_ref = builder.constant(0);
    const Operand own_part = kept.of(builder, own.rank, 1);
    Action& copy = builder.copy(tree.steps - tree.first_send() - receives, own_part, own.operand);
    copy.instances_ref = instances_ref;
    copy.into.block_ref = copy.a.block_ref = block_ref;
  }
  if (!tree.root) {
    builder.send(send_step, tree.from, kept.of(builder, first, ranks), receives > 0 ? 1 : 0);
  }
}

}  // namespace

void add_halving_gather(Builder& builder, const Member& member, const Share& share,
                        const Parts& target, const OwnPart& own) {
  if (member.exists()) add_member_gather(builder, member, share, target, own);
  builder.phase(1, static_cast<std::int32_t>(log2_ceil(member.ranks)), 0);
}

}  // namespace espalier

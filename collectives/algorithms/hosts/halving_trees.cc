// Broadcast and reduce of one block over the binomial tree of host_halves.h, as phases of other
// algorithms.
//
// Steps: ceil(log2 p). The reduce is the broadcast reversed in time. A rank adds the smallest half
// first; each half lies next to the ranks that the sum has, so operators need not be commutative,
// wherever the root is.

#include "collectives/algorithms/hosts/host_halves.h"
#include "collectives/build/phases.h"

namespace espalier {
namespace {

void add_member_reduce(Builder& builder, const Member& member, const Operand& own,
                       const Operand& sum, const Ring& news) {
  const HalvingTree tree(member.ranks, member.root, member.me);
  const std::uint32_t last = tree.steps - 1;
  RankInterval halves[32];
  std::uint32_t receives = 0;
  for (RankInterval interval = tree.interval; interval.size > 1; ++receives) {
    const RankHalves both = halve_ranks(interval);
    halves[receives] = both.given;
    interval = both.kept;
  }
  for (std::uint32_t at = 0; at < receives; ++at) {
    const RankInterval& half = halves[receives - 1 - at];
    const std::uint32_t step = last + 1 - tree.first_send() - receives + at;
    const Operand slot = builder.slot(0, {news.first + at % news.slots, 1});
    const Operand before = at == 0 ? own : sum;
    const bool is_right = half.first > member.me;
    builder.receive(step, half.first, slot);
    builder.combine(step, sum, is_right ? before : slot, is_right ? slot : before);
  }
  if (tree.root) return;
  builder.send(last - tree.step, tree.from, receives > 0 ? sum : own, receives > 0 ? 1 : 0);
}

}  // namespace

void add_halving_broadcast(Builder& builder, const Member& member, const Operand& source,
                           const Operand& into) {
  if (member.exists()) {
    const HalvingTree tree(member.ranks, member.root, member.me);
    if (!tree.root) builder.receive(tree.step, tree.from, into);
    RankInterval interval = tree.interval;
    for (std::uint32_t step = tree.first_send(); interval.size > 1; ++step) {
      const RankHalves halves = halve_ranks(interval);
      builder.send(step, halves.given.first, tree.root ? source : into,
                   tree.root ? 0 : step - tree.step);
      interval = halves.kept;
    }
  }
  builder.phase(1, static_cast<std::int32_t>(log2_ceil(member.ranks)), 0);
}

void add_halving_reduce(Builder& builder, const Member& member, const Operand& own,
                        const Operand& sum, const Ring& news) {
  if (member.exists()) add_member_reduce(builder, member, own, sum, news);
  builder.phase(1, static_cast<std::int32_t>(log2_ceil(member.ranks)), 0);
}

}  // namespace espalier

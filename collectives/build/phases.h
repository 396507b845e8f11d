#pragma once
// Phases that several algorithms consist of. Each is among the ranks of a group, which
// Builder::among() has named before, and ends its phase. Freestanding.

#include "collectives/build/rounds.h"

namespace espalier {

// A rank in a group of `ranks` ranks; the numbers are those in the group. me >= ranks: the rank is
// not in the group, and the phase has no actions on it.
struct Member {
  std::uint32_t ranks, root, me;

  [[nodiscard]] constexpr bool exists() const { return me < ranks; }
};

// Several groups that share a link take turns, each with a segment of its own: group `number` of
// `turns` begins a block in the steps number + turns * i.
struct Turn {
  std::uint32_t segment = 0;
  std::uint32_t number = 0, turns = 1;
};

// chain.cc: N * turns + ranks - 2 steps. The broadcast's root sends from `source`; the other
// members receive into OUTPUT. A reduce combines the blocks in `own` in the order of members, and
// member 0, its root, writes OUTPUT.
void add_chain_broadcast(Builder& builder, const Member& member, Buffer source,
                         const Turn& turn = {});
void add_chain_reduce(Builder& builder, const Member& member, Buffer own, const Turn& turn = {});

// two_tree.cc: the same over two trees, for schedules of two segments.
void add_two_tree_broadcast(Builder& builder, const Member& member, Buffer source);
void add_two_tree_reduce(Builder& builder, const Member& member, Buffer own);

// chain_scan.cc: N + ranks - 2 steps, from INPUT into OUTPUT. An exclusive scan writes no OUTPUT on
// member 0.
void add_chain_scan(Builder& builder, const Member& member, bool inclusive);

// ring.cc: N * turns * (ranks - 1) steps. Every member's own part is in its segments of `own`.
void add_ring_allgather(Builder& builder, RankRounds rounds, Buffer own, const Turn& turn = {});
// What a member adds to the sum of each member: the member's segment of a buffer, or in scratch the
// slot first_slot + (the member's number).
struct OwnSums {
  Buffer buffer;
  std::uint32_t first_slot = 0;

  // The contribution of the member `places` ranks further on, in round `step`: index minus step.
  [[nodiscard]] Operand moving(RankRounds& rounds, std::int32_t places) const;
  [[nodiscard]] Operand of_previous(Builder& builder, const RankRounds& rounds) const;
};
// Every member's sum ends in its segment of OUTPUT.
void add_ring_reduce_scatter(Builder& builder, RankRounds rounds, const OwnSums& sums,
                             const Turn& turn = {});

// hosts/halving_trees.cc: one block over the tree of host_halves.h, in ceil(log2 ranks) steps. In a
// broadcast the root sends from `source`, and the other members receive into and send from `into`.
// A reduce combines the members' blocks in `own` in their order. The sum is in `sum` on members
// that receive any, at least on the root. `news`: slots for the sums that arrive, ceil(log2 ranks)
// or as many as the window has steps.
void add_halving_broadcast(Builder& builder, const Member& member, const Operand& source,
                           const Operand& into);
void add_halving_reduce(Builder& builder, const Member& member, const Operand& own,
                        const Operand& sum, const Ring& news);

// Where a rank keeps the parts of several consecutive ranks, one block each: in a buffer, at their
// own segments, or in scratch.
struct Parts {
  Operand buffer;
  std::uint32_t first_rank = 0, first_slot = 0;  // in scratch

  [[nodiscard]] static Parts in_scratch(Builder& builder, std::uint32_t first_rank,
                                        std::uint32_t ranks);
  // The parts of `count` ranks from `rank` onward.
  [[nodiscard]] Operand of(Builder& builder, std::uint32_t rank, std::uint32_t count) const;
};
// The ranks whose parts a member stands for: `size` ranks from first + size * (the member's number)
// onward. If size is 1, the member is that rank.
struct Share {
  std::uint32_t first = 0, size = 1;

  [[nodiscard]] constexpr std::uint32_t rank(std::uint32_t member) const {
    return first + size * member;
  }
};
// A rank's own part: OUTPUT of a scatter, INPUT of a gather.
struct OwnPart {
  Operand operand;
  std::uint32_t rank;
};

// hosts/halving_parts.cc: scatter and gather over the same tree. If share.size is 1, the members'
// parts end in (come from) their own part; otherwise in scratch. Scatter: the root reads the parts
// from `source`. Returns the place of this rank's parts. Gather: the root writes the parts to
// `target`. If share.size > 1, `target` must hold the member's own parts on entry; on return it
// also holds the received ones.
[[nodiscard]] Parts add_halving_scatter(Builder& builder, const Member& member, const Share& share,
                                        const Parts& source, const OwnPart& own);
void add_halving_gather(Builder& builder, const Member& member, const Share& share,
                        const Parts& target, const OwnPart& own);

// dissemination.cc: every member hears of all others, in ceil(log2 ranks) steps. `own`: what it
// knows before; `known`: what it knows afterwards. `news`: as above.
void add_dissemination(Builder& builder, const Member& member, const Operand& own,
                       const Operand& known, const Ring& news);

}  // namespace espalier

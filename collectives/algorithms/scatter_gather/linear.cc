// Scatter and gather directly between the root and every other rank: the root's port is always
// busy, and every part goes straight from one caller's buffer to the other's.
//
// Steps: (p-1)N, which is optimal for one port, because the root must send (receive) this many
// blocks. Cost: (p-1)N * (alpha + beta*m/N), where m is the bytes of one rank's part: N = 1 is
// cheapest. Folklore.
//
// In step j of a round (rounds.h) the root sends to, or receives from, the rank j+1 after it. A
// node has at most 128 links, so there are at most 129 ranks; kTooLarge above.

#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"
#include "collectives/build/rounds.h"

namespace espalier {
namespace {

void add_linear_root(Builder& builder, RankRounds& rounds, std::uint32_t p, std::uint32_t root,
                     bool gather) {
  builder.ring_links(p - 1);
  const std::uint8_t all = rounds.instances();
  Action& own = builder.copy(0, builder.output(root), builder.input(root));
  own.instances_ref = all;  // at the rounds' pace, so that one proof covers every N
  own.into.block_ref = own.a.block_ref = rounds.block(1);
  Operand part = Builder::operand(gather ? Buffer::kOutput : Buffer::kInput, rounds.moving(1, 1));
  part.block_ref = rounds.block(p - 1);
  const std::uint8_t link = rounds.counting(0, 1);
  Action& transfer = gather ? builder.receive_by(0, link, part) : builder.send_by(0, link, part, 0);
  transfer.instances_ref = all;
}

Status generate_linear(const CollectiveParameters& parameters, std::uint32_t me,
                       Collective collective, Program& out) {
  const bool gather = collective == Collective::kGather;
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me, {.collective = collective, .algorithm = "linear"});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks, root = parameters.root;
  if (p == 1) return builder.finish_alone();
  if (p > kMaxLinearRanks) return builder.refuse(Status::kTooLarge);
  RankRounds rounds(builder, p, me);
  if (me == root) {
    add_linear_root(builder, rounds, p, root, gather);
    return rounds.finish();
  }
  const std::uint32_t step = (me + p - root) % p - 1;
  Operand own = gather ? builder.input(me) : builder.output(me);
  own.block_ref = rounds.block(1);
  const std::uint8_t all = rounds.instances();
  Action& transfer = gather ? builder.send(step, root, own, 0) : builder.receive(step, root, own);
  transfer.instances_ref = all;
  return rounds.finish();
}

}  // namespace

const Algorithm kLinearRows[] = {
    row("linear", Collective::kScatter, generate_linear,
        "straight between the root and each rank, up to 129 ranks: (p-1)N steps",
        {.max_ranks = kMaxLinearRanks}),
    row("linear", Collective::kGather, generate_linear,
        "straight between the root and each rank, up to 129 ranks: (p-1)N steps",
        {.max_ranks = kMaxLinearRanks}),
};

}  // namespace espalier

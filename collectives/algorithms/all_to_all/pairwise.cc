// All-to-all by exchange with every other rank in turn.
//
// Steps: (p-1)N, which is optimal for one port, because a rank must receive this many blocks. Cost:
// (p-1)N * (alpha + beta*m/N), where m is the bytes of one rank's part for one other: N = 1 is
// cheapest. Folklore.
//
// In step j of a round (rounds.h) a rank sends to the rank j+1 after it and receives from the rank
// j+1 before it. Every rank has a link to every other. Parts arrive before the same positions of
// INPUT are sent, so INPUT and OUTPUT must differ.

#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"
#include "collectives/build/rounds.h"

namespace espalier {
namespace {

Status pairwise_all_to_all(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                           Program& out) {
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me, {.collective = Collective::kAllToAll, .algorithm = "pairwise"});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  RankRounds rounds(builder, p, me);
  const auto others = static_cast<std::int32_t>(p - 1);
  builder.ring_links(p - 1);
  const std::uint8_t all = rounds.instances();
  const std::uint8_t block = rounds.block(p - 1);
  Action& own = builder.copy(0, builder.output(me), builder.input(me));
  own.instances_ref = all;  // at the rounds' pace, so that one proof covers every N
  own.into.block_ref = own.a.block_ref = rounds.block(1);
  const Operand to_after = Builder::operand(Buffer::kInput, rounds.moving(1, 1));
  Action& send = builder.send_by(0, rounds.counting(0, 1), to_after, 0);
  send.instances_ref = all;
  send.a.block_ref = block;
  const Operand from_before = Builder::operand(Buffer::kOutput, rounds.moving(-1, -1));
  Action& receive = builder.receive_by(0, rounds.counting(others - 1, -1), from_before);
  receive.instances_ref = all;
  receive.into.block_ref = block;
  return rounds.finish();
}

}  // namespace

const Algorithm kPairwiseRows[] = {
    row("pairwise", Collective::kAllToAll, pairwise_all_to_all,
        "exchange with every other rank in turn: (p-1)N steps"),
};

}  // namespace espalier

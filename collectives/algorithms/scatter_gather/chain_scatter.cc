// Scatter and gather along a chain of all ranks from the root onward, cyclically: two links per
// rank, for any number of ranks.
//
// Steps: (p-1)N, which is optimal for one port, because the root must send (receive) this many
// blocks. Cost: (p-1)N * (alpha + beta*m/N), where m is the bytes of one rank's part. N = 1 is
// cheapest; smaller blocks limit the scratch. Furthest first, as in [DD96] theorem 2. kTooLarge
// above 2^20 + 1 ranks.
//
// A round (rounds.h) is for one block of every part, and begins p-1 steps after the last one. The
// root sends the part of the furthest rank first. The rank at distance d from it passes on the
// parts of the ranks behind it one step after it received them, in steps d .. p-2 of the round, and
// then gets its own part, as all ranks do in that step. The gather is the scatter reversed in time:
// every rank sends its own part in the first step of the round, then those of the ranks behind it,
// nearest first.

#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"
#include "collectives/build/rounds.h"

namespace espalier {
namespace {

// A rank's view of the exchange. `behind` ranks are further away from the root than this one.
class ChainExchange {
 public:
  ChainExchange(Builder& builder, const CollectiveParameters& parameters, std::uint32_t me)
      : builder_(builder),
        rounds_(builder, parameters.ranks, me),
        me_(me),
        distance_((me + parameters.ranks - parameters.root) % parameters.ranks),
        behind_(parameters.ranks - 1 - distance_) {}

  void add_root(bool gather);
  void add_scatter();
  void add_gather();
  [[nodiscard]] Status finish() { return rounds_.finish(); }

 private:
  // Sets the action's instances: one per step of a round from `first` to `end` - 1 after its own
  // first step.
  void repeat_in(Action& action, std::uint32_t first, std::uint32_t end) {
    const std::uint8_t instances = rounds_.instances();
    const std::uint8_t block = rounds_.block(first, end);
    action.instances_ref = instances;
    action.into.block_ref = action.a.block_ref = block;
  }
  // The parts that pass through, in a ring of scratch slots; `places` as RankRounds::moving().
  [[nodiscard]] Operand passing(std::int32_t places, std::int32_t sign) {
    Operand operand = builder_.slot(0, builder_.ring(1, 1));
    operand.segment_ref = rounds_.moving(places, sign);
    return operand;
  }

  Builder& builder_;
  RankRounds rounds_;
  std::uint32_t me_, distance_, behind_;
};

void ChainExchange::add_root(bool gather) {
  repeat_in(builder_.copy(0, builder_.output(me_), builder_.input(me_)), 0, 1);
  if (gather) {
    const Operand parts = Builder::operand(Buffer::kOutput, rounds_.moving(1, 1));
    repeat_in(builder_.receive(0, rounds_.rank(1), parts), 0, behind_);
  } else {
    const Operand parts = Builder::operand(Buffer::kInput, rounds_.moving(-1, -1));
    repeat_in(builder_.send(0, rounds_.rank(1), parts, 0), 0, behind_);
  }
}

void ChainExchange::add_scatter() {
  const std::uint32_t begin = distance_ - 1;  // the first step in which a part arrives
  if (behind_ > 0) {
    const Operand parts = passing(-1 - static_cast<std::int32_t>(distance_), -1);
    repeat_in(builder_.receive(begin, rounds_.rank(-1), parts), 0, behind_);
    repeat_in(builder_.send(begin + 1, rounds_.rank(1), parts, 1), 0, behind_);
  }
  repeat_in(builder_.receive(begin + behind_, rounds_.rank(-1), builder_.output(me_)), 0, 1);
}

void ChainExchange::add_gather() {
  repeat_in(builder_.send(0, rounds_.rank(-1), builder_.input(me_), 0), 0, 1);
  if (behind_ == 0) return;
  const Operand parts = passing(1, 1);
  repeat_in(builder_.receive(0, rounds_.rank(1), parts), 0, behind_);
  repeat_in(builder_.send(1, rounds_.rank(-1), parts, 1), 0, behind_);
}

Status generate_chain_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                              Collective collective, Program& out) {
  const bool gather = collective == Collective::kGather;
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me, {.collective = collective, .algorithm = "chain"});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  ChainExchange exchange(builder, parameters, me);
  if (me == parameters.root) {
    exchange.add_root(gather);
  } else {
    gather ? exchange.add_gather() : exchange.add_scatter();
  }
  return exchange.finish();
}

}  // namespace

const Algorithm kChainScatterRows[] = {
    row("chain", Collective::kScatter, generate_chain_scatter,
        "one pipeline through all ranks, furthest first: (p-1)N steps", {.is_chain = true}),
    row("chain", Collective::kGather, generate_chain_scatter,
        "one pipeline through all ranks, nearest first: (p-1)N steps", {.is_chain = true}),
};

}  // namespace espalier

// Allreduce, barrier and allgather by recursive doubling, for short messages: one block; every
// leader of a group (folding.h) exchanges all that it has with another one, twice as far away in
// each step. A barrier is an allreduce of what each rank has heard of, without bytes. Partners
// answer each other, so their messages carry credits and a network's acknowledgments, which need
// messages of their own with dissemination. A rank of p = 2^k has k peers.
//
// Steps: log2 p if p is a power of two, otherwise floor(log2 p) + 2: the mates' data come in before
// and the result goes out after. Cost: allreduce steps * (alpha + beta*m). Allgather, where m is
// the bytes of one rank's part: log2 p * alpha + (p-1) * beta*m if p is a power of two, otherwise
// less than steps * alpha + 3p * beta*m. Source: [TRG05], which also has the fold of an allreduce;
// the barrier: [Brooks86].
//
// Sums and parts belong to intervals of ranks. So operators need not be commutative, and a message
// of an allgather is one piece of memory. A message has at most 65535 parts: the allgather is
// kTooLarge above 65536 ranks.

#include "collectives/algorithms/butterflies/folding.h"
#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"
#include "collectives/build/one_block.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxGatheringRanks = 65536;

void end_doubling(Builder& builder, const Folding& folding) {
  builder.phase(1, static_cast<std::int32_t>(folding.folds() + folding.levels()), 0);
}

// The mates get the result in a phase of its own, so INPUT and OUTPUT may be the same memory.
void add_doubling_mate(Builder& builder, const Folding& folding, const Operand& own,
                       const Operand& result) {
  builder.send(0, folding.mate(), own, 0);
  end_doubling(builder, folding);
  builder.receive(0, folding.mate(), result);
}

void add_doubling_allreduce(Builder& builder, const Folding& folding, const Operand& sum,
                            std::uint32_t window) {
  const std::uint32_t levels = folding.levels(), begin = folding.folds();
  const Operand own = builder.input(0);
  if (!folding.is_leader()) {
    return add_doubling_mate(builder, folding, own, sum);
  }
  const bool paired = folding.in_pair();
  const std::uint32_t first_link = paired ? 1 : 0;
  if (paired) {
    const Operand news = builder.slot(0, {builder.scratch(1), 1});
    builder.receive(0, folding.mate(), news);
    builder.combine(0, sum, own, news);
  }
  for (std::uint32_t level = 0; level < levels; ++level) (void)builder.link(folding.partner(level));
  const Ring ring = ring_of_receives(builder, levels, window);
  const std::uint32_t from_input = paired ? 0 : 1;  // the first exchange sends INPUT
  if (!paired) builder.send(begin, folding.partner(0), own, 0);
  if (levels > from_input) {
    const std::uint8_t links = links_from(builder, first_link + from_input);
    repeat_block(builder, builder.send_by(begin + from_input, links, sum, 1), levels - from_input);
  }
  const std::uint8_t links = links_from(builder, first_link);
  repeat_block(builder, builder.receive_by(begin, links, slots_from(builder, ring, 0)), levels);
  // Consecutive levels on the same side share an action.
  for (std::uint32_t level = 0; level < levels;) {
    const std::uint32_t from = level;
    const bool upper = folding.is_upper(from), input = from < from_input;
    for (++level; level < levels && !input && folding.is_upper(level) == upper;) ++level;
    const Operand news = slots_from(builder, ring, from), before = input ? own : sum;
    Action& combine =
        builder.combine(begin + from, sum, upper ? news : before, upper ? before : news);
    repeat_block(builder, combine, level - from);
  }
  end_doubling(builder, folding);
  if (paired) builder.send(0, folding.mate(), sum, 0);
}

// The parts of all ranks of `count` groups from `group` onward.
Operand parts_of_groups(Builder& builder, const Folding& folding, std::uint32_t group,
                        std::uint32_t count) {
  const std::uint32_t first = folding.first(group), size = folding.first(group + count) - first;
  Operand operand = builder.output(first);
  operand.segment_count = static_cast<std::uint16_t>(size == 1 ? 0 : size);
  return operand;
}

// A send waits for the receives of one step only. The copies of the own part ensure that all
// earlier receives are complete: there is one in each step of a receive, and copies run in order.
void add_doubling_allgather(Builder& builder, const Folding& folding, std::uint32_t me) {
  const std::uint32_t levels = folding.levels(), begin = folding.folds();
  const Operand own = builder.input(me);
  const Operand all = parts_of_groups(builder, folding, 0, folding.groups());
  if (!folding.is_leader()) {
    return add_doubling_mate(builder, folding, own, all);
  }
  const bool paired = folding.in_pair();
  const Operand own_part = builder.output(me);
  const std::uint32_t steps = begin + levels;
  repeat_block(builder, builder.copy(0, own_part, own), steps > 1 ? steps - 1 : 1);
  if (paired) builder.receive(0, folding.mate(), builder.output(folding.mate()));
  for (std::uint32_t level = 0; level < levels; ++level) {
    const std::uint32_t mine = folding.group() >> level << level;
    const bool input = level == 0 && !paired;
    const Operand held = input ? own : parts_of_groups(builder, folding, mine, 1u << level);
    builder.send(begin + level, folding.partner(level), held, input ? 0 : 1);
    const Operand news = parts_of_groups(builder, folding, mine ^ 1u << level, 1u << level);
    builder.receive(begin + level, folding.partner(level), news);
  }
  end_doubling(builder, folding);
  if (paired) builder.send(0, folding.mate(), all, 0);
}

Status generate_recursive_doubling(const CollectiveParameters& parameters, std::uint32_t me,
                                   Collective collective, Program& out) {
  Builder builder(out);
  const Status status = builder.begin(
      parameters, me,
      {.collective = collective, .algorithm = "recursive-doubling", .one_block = true});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  const bool gathers = collective == Collective::kAllgather;
  if (gathers && p > kMaxGatheringRanks) return builder.refuse(Status::kTooLarge);
  const Folding folding(p, me);
  if (gathers) {
    add_doubling_allgather(builder, folding, me);
  } else {
    const bool is_barrier = collective == Collective::kBarrier;
    const Operand sum = is_barrier ? builder.slot(0, {builder.scratch(1), 1}) : builder.output(0);
    add_doubling_allreduce(builder, folding, sum, out.window);
  }
  if (folding.folds() > 0) builder.phase(1, 1, 0);
  return builder.finish(static_cast<std::int32_t>(log2_ceil(p)), 0);
}

}  // namespace

const Algorithm kRecursiveDoublingRows[] = {
    row("recursive-doubling", Collective::kAllreduce, generate_recursive_doubling,
        "exchange of sums, twice as far each step: log2 p steps; floor(log2 p)+2 if p is not 2^k"),
    row("recursive-doubling", Collective::kAllgather, generate_recursive_doubling,
        "exchange of all parts, twice as far each step: log2 p steps; floor(log2 p)+2 if p is not "
        "2^k"),
    row("recursive-doubling", Collective::kBarrier, generate_recursive_doubling,
        "exchange of news, twice as far each step: log2 p steps; floor(log2 p)+2 if p is not 2^k"),
};

}  // namespace espalier

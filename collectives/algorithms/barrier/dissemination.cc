// Barrier by dissemination: in step k every rank notifies the rank 2^k after it of all ranks that
// it has heard of.
//
// Steps: ceil(log2 p), which is optimal: the number of ranks heard of can at most double. Cost:
// ceil(log2 p) * alpha. Source: Hensgen, Finkel, Manber (1988).
//
// A rank may send only once all earlier messages have arrived, not only the last one. The combines
// ensure this: they run in order, each after the receive of its step.

#include "collectives/algorithms/rows.h"
#include "collectives/build/one_block.h"
#include "collectives/build/phases.h"

namespace espalier {
namespace {

void add_member_steps(Builder& builder, const Member& member, const Operand& own,
                      const Operand& known, const Ring& slots) {
  const std::uint32_t p = member.ranks, me = member.me;
  const std::uint32_t steps = log2_ceil(p);
  const auto news = [&](std::uint32_t step) {
    return builder.slot(0, {slots.first + step % slots.slots, 1});
  };
  for (std::uint32_t step = 0; step < steps; ++step) {
    builder.send(step, (me + (1u << step)) % p, step == 0 ? own : known, step == 0 ? 0 : 1);
    builder.receive(step, (me + p - (1u << step)) % p, news(step));
  }
  builder.combine(0, known, news(0), own);
  if (steps == 1) return;
  const Operand all_news = slots_from(builder, slots, 1);
  repeat_block(builder, builder.combine(1, known, all_news, known), steps - 1);
}

}  // namespace

void add_dissemination(Builder& builder, const Member& member, const Operand& own,
                       const Operand& known, const Ring& news) {
  if (member.exists()) add_member_steps(builder, member, own, known, news);
  builder.phase(1, static_cast<std::int32_t>(log2_ceil(member.ranks)), 0);
}

namespace {

Status dissemination_barrier(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                             Program& out) {
  Builder builder(out);
  const Status status = builder.begin(
      parameters, me,
      {.collective = Collective::kBarrier, .algorithm = "dissemination", .one_block = true});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  const std::uint32_t steps = log2_ceil(p);
  const Operand own = builder.input(0);
  const Operand known = builder.slot(0, {builder.scratch(1), 1});
  const Ring news = ring_of_receives(builder, steps, parameters.window);
  add_dissemination(builder, {p, 0, me}, own, known, news);
  return builder.finish(static_cast<std::int32_t>(steps), 0);
}

}  // namespace

const Algorithm kDisseminationRows[] = {
    row("dissemination", Collective::kBarrier, dissemination_barrier,
        "each step tells a rank twice as far: ceil(log2 p) steps"),
};

}  // namespace espalier

// Scan and exscan along the chain of all ranks, in rank order: operators need not be commutative.
//
// Steps: p-2+N for both. Cost: steps * (alpha + beta*m/N), with the minimum at
// N = sqrt((p-2)*beta*m/alpha). Source: the pipelined broadcast of [Sanders03] section 2 with an
// operation at each rank; [SST07] compares its two-tree scan with it.
//
// For each block, rank r receives the sum of ranks 0 .. r-1, adds its own, and sends the result on.
// The exscan keeps the received sum in scratch until the own block is added, so INPUT and OUTPUT
// may be the same memory. Its last rank needs no further sum and receives into OUTPUT.

#include "collectives/algorithms/rows.h"
#include "collectives/build/phases.h"

namespace espalier {
namespace {

void add_rank(Builder& builder, std::uint32_t p, std::uint32_t me, bool inclusive) {
  const Operand own = builder.input(0);
  if (me == 0) {
    if (inclusive) builder.copy(0, builder.output(0), own);
    builder.send(0, 1, own, 0);
    return;
  }
  const bool last = me + 1 == p;
  const Operand result = builder.output(0);
  if (last && !inclusive) {
    builder.receive(me - 1, me - 1, result);
    return;
  }
  const Operand before = builder.slot(0, builder.ring(0, 1));
  builder.receive(me - 1, me - 1, before);
  const Operand sum = inclusive ? result : builder.slot(0, builder.ring(1, 1));
  builder.combine(me - 1, sum, before, own);
  if (!inclusive) builder.copy(me - 1, result, before);
  if (!last) builder.send(me, me + 1, sum, 1);
}

}  // namespace

void add_chain_scan(Builder& builder, const Member& member, bool inclusive) {
  if (member.exists()) add_rank(builder, member.ranks, member.me, inclusive);
  builder.phase(1, static_cast<std::int32_t>(member.ranks) - 2, 1);
}

namespace {

Status generate_chain_scan(const CollectiveParameters& parameters, std::uint32_t me,
                           Collective collective, Program& out) {
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me, {.collective = collective, .algorithm = "chain"});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  add_chain_scan(builder, {p, 0, me}, collective == Collective::kScan);
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kChainScanRows[] = {
    row("chain", Collective::kScan, generate_chain_scan,
        "one pipeline through all ranks: p-2+N steps", {.is_chain = true}),
    row("chain", Collective::kExscan, generate_chain_scan,
        "one pipeline through all ranks: p-2+N steps", {.is_chain = true}),
};

}  // namespace espalier

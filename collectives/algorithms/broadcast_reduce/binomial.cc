// Broadcast by the binomial tree, for short messages: one block of any length.
//
// Steps: ceil(log2 p). Cost: ceil(log2 p) * (alpha + beta*m).
//
// Rank v (counted from the root) receives in step floor(log2 v) from rank v - 2^floor(log2 v). In
// step s every rank below 2^s sends to rank v + 2^s. [Bruck96] section 2.1; optimal for one block
// ([Sanders03] section 2: the number of ranks that have the block can at most double per step).

#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

Status binomial_broadcast(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                          Program& out) {
  Builder builder(out);
  const Status status = builder.begin(
      parameters, me,
      {.collective = Collective::kBroadcast, .algorithm = "binomial", .one_block = true});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  const auto rank = [&](std::uint32_t v) { return (parameters.root + v) % p; };
  const std::uint32_t v = (me + p - parameters.root) % p;
  const std::uint32_t steps = log2_ceil(p);
  if (v == 0) {
    for (std::uint32_t step = 0; step < steps; ++step) (void)builder.link(rank(1u << step));
    builder.send_to_each(0, 0, steps, builder.input(0));
  } else {
    const std::uint32_t arrival = log2_ceil(v + 1) - 1;
    builder.receive(arrival, rank(v - (1u << arrival)), builder.output(0));
    // Each send is a separate action, because `after` differs.
    for (std::uint32_t step = arrival + 1; step < steps && v + (1u << step) < p; ++step) {
      builder.send(step, rank(v + (1u << step)), builder.output(0), step - arrival);
    }
  }
  builder.phase(1, static_cast<std::int32_t>(steps), 0);
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kBinomialRows[] = {
    row("binomial", Collective::kBroadcast, binomial_broadcast,
        "one block down a binomial tree: ceil(log2 p) steps"),
};

}  // namespace espalier

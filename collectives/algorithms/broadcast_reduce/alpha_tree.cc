// Broadcast in the postal model by trees with a ratio alpha, for short messages: one block of any
// length. The rank that has the block keeps round(alpha n) of n ranks (trees/alpha.h).
//
//  * alpha-tree: one alpha for all n, which is `ratio_numerator` / `ratio_denominator`. By default
//    it is the look-up table's for p ranks or, if faster, the table's for kMaxRanks ranks. The
//    latter is 1/phi for lambda = 2, where it is optimal for all n; for most lambda no alpha is.
//  * alpha-table: a look-up table gives alpha by n. Its entries are the tops of the triangles in
//    the picture of optimal alphas: N(T - S) / N(T) with T = T_lambda(n). They are computed here,
//    as the numbers of ranks decrease, and not stored.
//
// Steps (ticks), lambda = L/S: alpha_ticks() of trees/alpha.h; alpha-table: T_lambda(p), which is
// optimal. Cost: S ticks are the time of a step with the whole block. Source: [Bruck96] sections
// 2.4 and 2.5. lambda-tree splits by N_lambda instead, and is as fast as alpha-table.
//
// The order of the ranks, and meshes: postal_tree.h. kBadArgument unless 0 < alpha < 1. kTooLarge
// if a rank has more sends than a program has room for, or the tree takes more than kMaxAlphaTicks.

#include "collectives/algorithms/broadcast_reduce/postal_tree.h"
#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/alpha.h"

namespace espalier {
namespace {

// Limits the time that a generator takes: a small alpha makes a long chain. Larger than the tree of
// any alpha over as many ranks as one rank can have peers.
constexpr std::uint32_t kMaxAlphaTicks = 1u << 14;
static_assert(kMaxAlphaTicks >= kMaxPostalRootSends * kMaxTicks);

class AlphaSplit {
 public:
  explicit AlphaSplit(const Alpha& alpha) : alpha_(alpha) {}

  [[nodiscard]] std::uint32_t given(std::uint32_t size) const {
    return size - kept_by(alpha_, size);
  }
  void keep() {}
  void give() {}

 private:
  Alpha alpha_;
};

class TableSplit {
 public:
  TableSplit(const Reach& reach, std::uint32_t send) : reach_(reach), send_(send) {}

  [[nodiscard]] std::uint32_t given(std::uint32_t size) {
    while (reach_.value(1) >= size) reach_.down(1);
    return size - kept_by(alpha_of(reach_, send_), size);
  }
  void keep() {}
  void give() {}

 private:
  Reach reach_;
  std::uint32_t send_;
};

Alpha chosen_alpha(const CollectiveParameters& parameters, const Reach& reach) {
  if (parameters.ratio_denominator != 0) {
    return {parameters.ratio_numerator, parameters.ratio_denominator};
  }
  const std::uint32_t p = parameters.ranks;
  const std::uint32_t send = parameters.send_ticks, latency = parameters.latency_ticks;
  Reach large = reach;
  large.up_to(kMaxRanks);
  const Alpha own = alpha_of(reach, send), last = alpha_of(large, send);
  const auto ticks = [&](const Alpha& alpha) {
    return alpha_ticks(alpha, p, send, latency, kMaxAlphaTicks);
  };
  return ticks(own) <= ticks(last) ? own : last;
}

// No rank except the root has more sends than the first rank that the root sends to, because
// neither n - n' nor the number of sends decreases with n.
bool has_room(const Alpha& alpha, std::uint32_t ranks) {
  const std::uint32_t given = ranks - kept_by(alpha, ranks);
  return alpha_sends(alpha, ranks, kMaxPostalRootSends) <= kMaxPostalRootSends &&
         alpha_sends(alpha, given, kMaxPostalSends) <= kMaxPostalSends;
}

Status alpha_tree_broadcast(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                            Program& out) {
  Builder builder(out);
  const Status status = begin_postal_tree(parameters, me, "alpha-tree", builder);
  if (status != Status::kOk) return status;
  if (parameters.ratio_denominator != 0 &&
      !is_alpha({parameters.ratio_numerator, parameters.ratio_denominator})) {
    return builder.refuse(Status::kBadArgument);
  }
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  const std::uint32_t send = parameters.send_ticks, latency = parameters.latency_ticks;
  Reach reach(send, latency);
  reach.up_to(p);
  const Alpha alpha = chosen_alpha(parameters, reach);
  const std::uint32_t steps = alpha_ticks(alpha, p, send, latency, kMaxAlphaTicks);
  if (steps > kMaxAlphaTicks || !has_room(alpha, p)) return builder.refuse(Status::kTooLarge);
  return finish_postal_tree(parameters, me, AlphaSplit(alpha), steps, reach.ticks(), builder);
}

Status alpha_table_broadcast(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                             Program& out) {
  Builder builder(out);
  const Status status = begin_postal_tree(parameters, me, "alpha-table", builder);
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  Reach reach(parameters.send_ticks, parameters.latency_ticks);
  reach.up_to(p);
  const std::uint32_t steps = reach.ticks();
  if (!has_room_for_sends(parameters, steps)) return builder.refuse(Status::kTooLarge);
  return finish_postal_tree(parameters, me, TableSplit(reach, parameters.send_ticks), steps, steps,
                            builder);
}

}  // namespace

const Algorithm kAlphaTreeRows[] = {
    row("alpha-tree", Collective::kBroadcast, alpha_tree_broadcast,
        "one block in the postal model, --lambda L/S; a sender keeps the share --ratio of its "
        "ranks: at least T_lambda(p) ticks",
        {.takes_lambda = true, .takes_ratio = true}),
    row("alpha-table", Collective::kBroadcast, alpha_table_broadcast,
        "one block in the postal model, --lambda L/S; the share that is kept by a table: "
        "T_lambda(p) ticks",
        {.takes_lambda = true}),
};

}  // namespace espalier

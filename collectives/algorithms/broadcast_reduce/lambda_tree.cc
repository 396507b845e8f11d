// Broadcast in the postal model by the lambda-tree, for short messages: one block of any length.
//
// Steps (ticks): T_lambda(p) with lambda = L/S of the parameters, which is optimal. Cost:
// T_lambda(p) ticks; S ticks are alpha + beta*m. Source: [Bruck96] section 2. The split by the
// stored N_lambda(.) is exact for all p and rational lambda; a fixed ratio is not (alpha_tree.cc).
//
// A rank that has the block and T ticks left for n ranks gives min(N_lambda(T - L), n - 1) of them
// to one of these ranks. It keeps the rest, with S ticks less. The order of the ranks, and meshes:
// postal_tree.h. kTooLarge if a rank has more sends than a program has actions: lambda >= 10
// beyond 10^6 ranks.

#include "collectives/algorithms/broadcast_reduce/postal_tree.h"
#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/postal.h"

namespace espalier {
namespace {

// The root has at most kMaxTicks more sends than another rank.
static_assert(kMaxPostalSends + kMaxTicks <= kMaxPostalRootSends);

// By N_lambda; the reach is for the ticks that remain.
class LambdaSplit {
 public:
  LambdaSplit(const Reach& reach, const CollectiveParameters& parameters)
      : reach_(reach), send_(parameters.send_ticks), latency_(parameters.latency_ticks) {}

  [[nodiscard]] std::uint32_t given(std::uint32_t size) const {
    const std::uint32_t fit = reach_.value(latency_);
    return fit < size - 1 ? fit : size - 1;
  }
  void keep() { reach_.down(send_); }
  void give() { reach_.down(latency_); }

 private:
  Reach reach_;
  std::uint32_t send_, latency_;
};

Status lambda_tree_broadcast(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                             Program& out) {
  Builder builder(out);
  const Status status = begin_postal_tree(parameters, me, "lambda-tree", builder);
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  Reach reach(parameters.send_ticks, parameters.latency_ticks);
  reach.up_to(p);
  const std::uint32_t steps = reach.ticks();
  if (!has_room_for_sends(parameters, steps)) return builder.refuse(Status::kTooLarge);
  return finish_postal_tree(parameters, me, LambdaSplit(reach, parameters), steps, steps, builder);
}

}  // namespace

const Algorithm kLambdaTreeRows[] = {
    row("lambda-tree", Collective::kBroadcast, lambda_tree_broadcast,
        "one block in the postal model, --lambda L/S: T_lambda(p) ticks", {.takes_lambda = true}),
};

}  // namespace espalier

// Broadcast in the postal model by the lambda-tree, for short messages: one block of any length.
//
// Steps (ticks): T_lambda(p) with lambda = L/S of the parameters, which is optimal. Cost:
// T_lambda(p) ticks; S ticks are alpha + beta*m. Source: [Bruck96] section 2. The split by the
// stored N_lambda(.) is exact for all p and rational lambda; a fixed ratio is not.
//
// A rank that has the block and T ticks left for n ranks gives min(N_lambda(T - L), n - 1) of them
// to one of these ranks. It keeps the rest, with S ticks less. Ranks are taken in order from the
// root onward, cyclically. On a mesh this is the row-major list from the source onward, on which
// the tree's messages of one step share no link ([Bruck96] section 2.6; valid if a message occupies
// its links for one step). kTooLarge if a rank has more sends than a program has actions:
// lambda >= 10 beyond 10^6 ranks.

#include "collectives/algorithms/build/builder.h"
#include "collectives/algorithms/trees/postal.h"
#include "espalier/collectives/algorithms/generators.h"

namespace espalier {
namespace {

// Maximum number of sends of a rank other than the root. Each send has its own first step, which
// takes one of a program's counts; four counts are used otherwise. The root's sends share one
// action. They number at most kMaxTicks more, and each takes a peer.
constexpr std::uint32_t kMaxSends = sizeof(Program::counts) / sizeof(Count) - 4;
static_assert(kMaxSends + kMaxTicks <= sizeof(Program::peers) / sizeof(std::uint32_t));

struct Ticks {
  std::uint32_t send, latency;
};

// The ranks (counted from the root) first .. first + size - 1. The first one has the block and may
// send it from tick `clock` onward. The reach is for the remaining ticks.
struct PostalSubtree {
  std::uint32_t first, size, clock;
};

PostalSubtree given_by(const PostalSubtree& tree, const Reach& reach, const Ticks& ticks) {
  const std::uint32_t fit = reach.value(ticks.latency);
  const std::uint32_t size = fit < tree.size - 1 ? fit : tree.size - 1;
  return {tree.first + tree.size - size, size, tree.clock + ticks.latency};
}

void keep_rest(PostalSubtree& tree, Reach& reach, const PostalSubtree& given, const Ticks& ticks) {
  tree.size -= given.size;
  tree.clock += ticks.send;
  reach.down(ticks.send);
}

// Adds the sends of a subtree's first rank, which reach the whole subtree.
void add_sends(Builder& builder, const CollectiveParameters& parameters, PostalSubtree tree,
               Reach& reach, const Ticks& ticks) {
  const auto rank = [&](std::uint32_t v) { return (parameters.root + v) % parameters.ranks; };
  const bool source = tree.first == 0;
  const std::uint32_t ready = tree.clock;
  std::uint32_t sends = 0;
  for (; tree.size > 1; ++sends) {
    const PostalSubtree given = given_by(tree, reach, ticks);
    if (source) {
      (void)builder.link(rank(given.first));
    } else {
      // Each send is a separate action, because `after` differs.
      builder.send(tree.clock, rank(given.first), builder.output(0), tree.clock + 1 - ready);
    }
    keep_rest(tree, reach, given, ticks);
  }
  if (source) builder.send_to_each(0, 0, sends, builder.input(0));
}

}  // namespace

Status lambda_tree_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                             Program& out) {
  Builder builder(out);
  const std::uint64_t mesh = std::uint64_t{parameters.rows} * parameters.columns;
  const Status status = builder.begin(
      parameters, me,
      {.collective = Collective::kBroadcast,
       .algorithm = "lambda-tree",
       .one_block = true,
       .contention = mesh > 0 ? ContentionGuarantee::kSlot : ContentionGuarantee::kAsync,
       .send_ticks = parameters.send_ticks,
       .latency_ticks = parameters.latency_ticks});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  const Ticks ticks{parameters.send_ticks, parameters.latency_ticks};
  const std::uint32_t v = (me + p - parameters.root) % p;
  Reach reach(ticks.send, ticks.latency);
  reach.up_to(p);
  const std::uint32_t steps = reach.ticks();
  // The first rank that the root sends to has a full tree of T - L ticks, and the maximum number of
  // sends.
  if (steps >= 2 * ticks.latency && (steps - 2 * ticks.latency) / ticks.send >= kMaxSends) {
    out.clear();
    return Status::kTooLarge;
  }
  PostalSubtree tree{0, p, 0};
  std::uint32_t parent = 0;
  while (tree.first != v) {
    const PostalSubtree given = given_by(tree, reach, ticks);
    if (v < given.first) {
      keep_rest(tree, reach, given, ticks);
    } else {
      parent = tree.first;
      tree = given;
      reach.down(ticks.latency);
    }
  }
  if (v != 0) builder.receive(tree.clock - 1, (parameters.root + parent) % p, builder.output(0));
  add_sends(builder, parameters, tree, reach, ticks);
  builder.phase(ticks.send, static_cast<std::int32_t>(steps), 0);
  return builder.finish(static_cast<std::int32_t>(steps), 0);
}

}  // namespace espalier

// Broadcast in the postal model by the lambda-tree, for short messages: one block, whatever its
// length.
//
// Steps (ticks): T_lambda(p), lambda = L/S of the group's ticks: optimal. Cost: T_lambda(p) ticks,
// S of them alpha + beta*m. Source: 004 section 2 (Bruck, De Coster, Dewulf, Ho, Lauwereins); the
// split by the stored N_lambda(.) is exact for all p and rational lambda, where no fixed ratio is.
// Who has the block and T ticks left for n ranks gives min(N_lambda(T - L), n - 1) of them to one
// of those, and keeps the rest, with S ticks less. Ranks are taken in order from the root on,
// cyclically: on a mesh that is the row-major list from the source on, on which the tree's messages
// of one step share no link (004 section 2.6; true where a message occupies its links for one
// step). kTooLarge where a rank has more sends than a program actions: lambda of 10 and more beyond
// 10^6 ranks.

#include "collectives/algorithms/build/builder.h"
#include "collectives/algorithms/trees/postal.h"
#include "espalier/collectives/algorithms/generators.h"

namespace espalier {
namespace {

// Each has a first step of its own: a program's counts, but for four others. The root's are one
// action, and at most kMaxTicks more, as many as there are peers.
constexpr std::uint32_t kMostSends = sizeof(Program::counts) / sizeof(Count) - 4;
static_assert(kMostSends + kMaxTicks <= sizeof(Program::peers) / sizeof(std::uint32_t));

struct Ticks {
  std::uint32_t send, latency;
};

// The ranks (counted from the root) first .. first + size - 1, of which the first has the block and
// may send it from tick `clock` on. The reach is at the ticks left.
struct Subtree {
  std::uint32_t first, size, clock;
};

Subtree given_by(const Subtree& tree, const Reach& reach, const Ticks& ticks) {
  const std::uint32_t fit = reach.value(ticks.latency);
  const std::uint32_t size = fit < tree.size - 1 ? fit : tree.size - 1;
  return {tree.first + tree.size - size, size, tree.clock + ticks.latency};
}

void keep_rest(Subtree& tree, Reach& reach, const Subtree& given, const Ticks& ticks) {
  tree.size -= given.size;
  tree.clock += ticks.send;
  reach.down(ticks.send);
}

// Sends to all of a subtree from its first rank.
void add_sends(Builder& builder, const Group& group, Subtree tree, Reach& reach,
               const Ticks& ticks) {
  const auto rank = [&](std::uint32_t v) { return (group.root + v) % group.ranks; };
  const bool source = tree.first == 0;
  const std::uint32_t ready = tree.clock;
  std::uint32_t sends = 0;
  for (; tree.size > 1; ++sends) {
    const Subtree given = given_by(tree, reach, ticks);
    if (source) {
      (void)builder.link(rank(given.first));
    } else {
      // `after` differs from send to send, so each is an action of its own.
      builder.send(tree.clock, rank(given.first), builder.output(0), tree.clock + 1 - ready);
    }
    keep_rest(tree, reach, given, ticks);
  }
  if (source) builder.send_to_each(0, 0, sends, builder.input(0));
}

}  // namespace

Status lambda_tree_broadcast(const Group& group, std::uint32_t me, Program& out) {
  Builder builder(out);
  const std::uint64_t mesh = std::uint64_t{group.rows} * group.columns;
  const Status status =
      builder.begin(group, me,
                    {.collective = espalier_Collective_BROADCAST,
                     .algorithm = "lambda-tree",
                     .one_block = true,
                     .grade = mesh > 0 ? espalier_Grade_SLOT : espalier_Grade_ASYNC,
                     .send_ticks = group.send_ticks,
                     .latency_ticks = group.latency_ticks});
  if (status != Status::kOk) return status;
  const std::uint32_t p = group.ranks;
  if (p == 1) return builder.finish_alone();
  const Ticks ticks{group.send_ticks, group.latency_ticks};
  const std::uint32_t v = (me + p - group.root) % p;
  Reach reach(ticks.send, ticks.latency);
  reach.up_to(p);
  const std::uint32_t steps = reach.ticks();
  // The first rank that the root sends to has a full tree of T - L ticks, the most sends of all.
  if (steps >= 2 * ticks.latency && (steps - 2 * ticks.latency) / ticks.send >= kMostSends) {
    out.clear();
    return Status::kTooLarge;
  }
  Subtree tree{0, p, 0};
  std::uint32_t parent = 0;
  while (tree.first != v) {
    const Subtree given = given_by(tree, reach, ticks);
    if (v < given.first) {
      keep_rest(tree, reach, given, ticks);
    } else {
      parent = tree.first;
      tree = given;
      reach.down(ticks.latency);
    }
  }
  if (v != 0) builder.receive(tree.clock - 1, (group.root + parent) % p, builder.output(0));
  add_sends(builder, group, tree, reach, ticks);
  builder.phase(ticks.send, static_cast<std::int32_t>(steps), 0);
  return builder.finish(static_cast<std::int32_t>(steps), 0);
}

}  // namespace espalier

// Broadcast along one pipelined binary tree: the fractional tree of [Sanders03] with r = 1
// (sections 2 and 3, Fig. 2), for any number of ranks.
//
// Steps: d + 2N - 1 for p >= 3, where d = min{i : P_i >= p} - 1, P_i = 1 + P_{i-1} + P_{i-2},
// P_0 = 1 and P_1 = 2. The paper's d + 2N is a safe bound; simulation shows one step less. N steps
// for p = 2: no rank sends to the right, so there is no pause. Cost: steps * (alpha + beta*m/N),
// about (sqrt(2*beta*m) + sqrt(d*alpha))^2.
//
// A rank sends each block down one step after it received the block, and right one step later. P_i
// ranks can be reached in i steps: the root, P_{i-1} below its down successor and P_{i-2} below its
// right successor.

#include "collectives/algorithms/build/builder.h"
#include "espalier/collectives/algorithms/generators.h"

namespace espalier {
namespace {

// A subtree, with ranks counted from the root. Its ranks are first .. first + size - 1. The first
// is its root, which receives its first block in step `arrival` (-1 at the broadcast's root).
// `reach` is P_i and `reach_down` P_{i-1} for the i steps that remain after the arrival;
// size <= reach.
struct BinarySubtree {
  std::uint32_t first = 0, size = 1;
  std::int32_t arrival = -1;
  std::uint64_t reach = 1, reach_down = 0;
};

BinarySubtree down_of(const BinarySubtree& tree) {
  const std::uint64_t rest = tree.size - 1;
  const std::uint64_t size = rest < tree.reach_down ? rest : tree.reach_down;
  return {tree.first + 1, static_cast<std::uint32_t>(size), tree.arrival + 1, tree.reach_down,
          tree.reach - 1 - tree.reach_down};
}

BinarySubtree right_of(const BinarySubtree& tree) {
  const BinarySubtree down = down_of(tree);
  return {down.first + down.size, tree.size - 1 - down.size, tree.arrival + 2, down.reach_down,
          down.reach - 1 - down.reach_down};
}

// Returns the whole tree; sets `depth` to the least i with P_i >= p.
BinarySubtree whole(std::uint32_t p, std::uint32_t& depth) {
  BinarySubtree tree{0, p, -1, 1, 0};
  for (depth = 0; tree.reach < p; ++depth) {
    const std::uint64_t next = 1 + tree.reach + (depth == 0 ? 0 : tree.reach_down);
    tree.reach_down = tree.reach;
    tree.reach = next;
  }
  return tree;
}

}  // namespace

Status binary_broadcast(const CollectiveParameters& parameters, std::uint32_t me, Program& out) {
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me, {.collective = Collective::kBroadcast, .algorithm = "binary"});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  const auto rank = [&](std::uint32_t v) { return (parameters.root + v) % p; };
  const std::uint32_t v = (me + p - parameters.root) % p;

  std::uint32_t depth = 0;
  BinarySubtree tree = whole(p, depth);
  std::uint32_t parent = 0;
  while (tree.first != v) {
    parent = tree.first;
    const BinarySubtree right = right_of(tree);
    tree = v < right.first ? down_of(tree) : right;
  }
  const bool source = v == 0;
  const Operand from = source ? builder.input(0) : builder.output(0);
  if (!source) builder.receive(static_cast<std::uint32_t>(tree.arrival), rank(parent), from);
  const auto forward = [&](const BinarySubtree& to) {
    if (to.size == 0) return;
    const auto step = static_cast<std::uint32_t>(to.arrival);
    builder.send(step, rank(to.first), from,
                 source ? 0 : static_cast<std::uint32_t>(to.arrival - tree.arrival));
  };
  forward(down_of(tree));
  forward(right_of(tree));
  const std::int32_t period = p == 2 ? 1 : 2;
  builder.phase(static_cast<std::uint32_t>(period), static_cast<std::int32_t>(depth) - period,
                period);
  return builder.finish_one_port();
}

}  // namespace espalier

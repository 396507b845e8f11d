// Broadcast and reduce along one pipelined binary tree: the fractional tree of [Sanders03] with
// r = 1 (sections 2 and 3, Fig. 2), for any number of ranks.
//
// Steps: d + 2N - 1 for p >= 3, where d = min{i : P_i >= p} - 1, P_i = 1 + P_{i-1} + P_{i-2},
// P_0 = 1 and P_1 = 2. The paper's d + 2N is a safe bound; simulation shows one step less. N steps
// for p = 2: no rank sends to the right, so there is no pause. Cost: steps * (alpha + beta*m/N),
// about (sqrt(2*beta*m) + sqrt(d*alpha))^2.
//
// A rank sends each block down one step after it received the block, and right one step later. P_i
// ranks can be reached in i steps: the root, P_{i-1} below its down successor and P_{i-2} below its
// right successor.
//
// A reduce is the broadcast reversed in time: a rank receives each block from its right successor,
// one step later from its down successor, and sends the sum one step after that. The subtrees are
// in rank order: first the rank itself, then those of down and right. To rank 0 or p-1 operators
// need not be commutative: the order of the ranks is reversed for p-1. For other roots the tree
// takes the ranks from the root onward, cyclically.

#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"

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

// A rank's subtree, and the rank above it.
struct BinaryPosition {
  BinarySubtree tree;
  std::uint32_t parent = 0;
};

// Returns the position of rank v; sets `depth` as whole() does.
BinaryPosition find_position(std::uint32_t p, std::uint32_t v, std::uint32_t& depth) {
  BinaryPosition position{whole(p, depth)};
  while (position.tree.first != v) {
    position.parent = position.tree.first;
    const BinarySubtree right = right_of(position.tree);
    position.tree = v < right.first ? down_of(position.tree) : right;
  }
  return position;
}

void end_binary_phase(Builder& builder, std::uint32_t p, std::uint32_t depth) {
  const std::int32_t period = p == 2 ? 1 : 2;
  builder.phase(static_cast<std::uint32_t>(period), static_cast<std::int32_t>(depth) - period,
                period);
}

// The tree of a reduce: rank v of it is the v-th after (before) the root.
struct BinaryReduce {
  std::uint32_t ranks, root;
  bool backwards;  // towards rank p-1

  [[nodiscard]] std::uint32_t rank(std::uint32_t v) const {
    return backwards ? root - v : (root + v) % ranks;
  }
  // The inverse of rank().
  [[nodiscard]] std::uint32_t number(std::uint32_t rank) const {
    return backwards ? root - rank : (rank + ranks - root) % ranks;
  }
  void add(Builder& builder, std::uint32_t me) const;
  void combine(Builder& builder, std::uint32_t step, const Operand& into, const Operand& nearer,
               const Operand& farther, std::uint32_t after) const {
    Action& action =
        builder.combine(step, into, backwards ? farther : nearer, backwards ? nearer : farther);
    action.after = static_cast<std::uint16_t>(after);
  }
};

void BinaryReduce::add(Builder& builder, std::uint32_t me) const {
  std::uint32_t depth = 0;
  const BinaryPosition position = find_position(ranks, number(me), depth);
  const BinarySubtree down = down_of(position.tree), right = right_of(position.tree);
  // A message of block i in step t + 2i of the broadcast is in step depth - 1 - t + 2i of the
  // reduce.
  const auto step_of = [&](const BinarySubtree& tree) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(depth) - 1 - tree.arrival);
  };
  const bool sink = position.tree.first == 0;
  const std::uint32_t period = ranks == 2 ? 1 : 2;
  Operand sum = builder.input(0);
  if (down.size > 0) {
    const Operand slot = builder.slot(0, builder.ring(sink ? 0 : 1, period));
    const Operand into = sink ? builder.output(0) : slot;
    const std::uint32_t step = step_of(down);
    builder.receive(step, rank(down.first), slot);
    combine(builder, step, into, sum, slot, 0);
    sum = into;
    if (right.size > 0) {
      const Operand other = builder.slot(0, builder.ring(1, period));
      builder.receive(step - 1, rank(right.first), other);
      combine(builder, step, sum, sum, other, 1);
    }
  }
  if (!sink) {
    builder.send(step_of(position.tree), rank(position.parent), sum, down.size > 0 ? 1 : 0);
  }
}

Status binary_broadcast(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                        Program& out) {
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me, {.collective = Collective::kBroadcast, .algorithm = "binary"});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  const auto rank = [&](std::uint32_t v) { return (parameters.root + v) % p; };
  const std::uint32_t v = (me + p - parameters.root) % p;

  std::uint32_t depth = 0;
  const BinaryPosition position = find_position(p, v, depth);
  const BinarySubtree& tree = position.tree;
  const bool source = v == 0;
  const Operand from = source ? builder.input(0) : builder.output(0);
  if (!source)
    builder.receive(static_cast<std::uint32_t>(tree.arrival), rank(position.parent), from);
  const auto forward = [&](const BinarySubtree& to) {
    if (to.size == 0) return;
    const auto step = static_cast<std::uint32_t>(to.arrival);
    builder.send(step, rank(to.first), from,
                 source ? 0 : static_cast<std::uint32_t>(to.arrival - tree.arrival));
  };
  forward(down_of(tree));
  forward(right_of(tree));
  end_binary_phase(builder, p, depth);
  return builder.finish_one_port();
}

Status binary_reduce(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                     Program& out) {
  Builder builder(out);
  const std::uint32_t p = parameters.ranks, root = parameters.root;
  const bool to_last = root != 0 && root + 1 == p;
  const Status status = builder.begin(parameters, me,
                                      {.collective = Collective::kReduce,
                                       .algorithm = "binary",
                                       .needs_commutative = root != 0 && !to_last});
  if (status != Status::kOk) return status;
  if (p == 1) return builder.finish_alone();
  BinaryReduce{p, root, to_last}.add(builder, me);
  std::uint32_t depth = 0;
  (void)whole(p, depth);
  end_binary_phase(builder, p, depth);
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kBinaryRows[] = {
    row("binary", Collective::kBroadcast, binary_broadcast,
        "one pipelined binary tree: d+2N-1 steps, d about log_1.62 p (N steps for p = 2)"),
    row("binary", Collective::kReduce, binary_reduce,
        "one pipelined binary tree: d+2N-1 steps, d about log_1.62 p (N steps for p = 2)",
        {.needs_commutative = true}),
};

}  // namespace espalier

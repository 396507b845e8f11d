// Broadcast, reduce and allreduce by two trees for simplex ports, which send or receive in a step,
// not both ([SST09] section 5.2, [Sanders03] section 3). The ranks except the root form pairs (the
// paper's couples). Each pair takes the place of one rank of the trees.
//
// Steps of broadcast and reduce: 2L + 2 + 4(N-1), with N blocks in each half and L = last_arrival()
// of the two trees of floor((p-1)/2) places: twice the two-tree's steps; 2N for p = 2. Steps of
// allreduce: twice that. Cost: steps * (alpha + beta*m/2N), about 2*beta*m (allreduce: 4*beta*m)
// for long messages, which is optimal.
//
// Broadcast: a pair consists of a receiver and a sender. In step 2j it does what its place in the
// trees does in step j: its sender sends, its receiver receives. In step 2j+1 the receiver passes
// the received block to the sender. If p is even, one rank is left over. The root, which only
// sends, sends each block to that rank in the steps in between.
//
// Reduce: time runs backwards. In step 2j+1 a pair does what its place does in step j of a two-tree
// reduce. In step 2j the rank that does not send to the parent passes its sum to the rank that
// does. A pair of a receiver and a sender would have to add the sum from the right child before the
// receiver's own block. So the lower rank receives from the left child, the upper rank from the
// right child (pair_trees.h). Sums keep the order of the ranks from the root onward, and to root 0
// or p-1 operators need not be commutative.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/pair_sums.h"
#include "collectives/algorithms/trees/pair_trees.h"
#include "collectives/algorithms/trees/two_trees.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

using Edge = TwoTrees::Edge;

// Ranks are counted from the root: pair c = 1, 2, ... is receiver 2c-1 and sender 2c.
struct Couples {
  std::uint32_t ranks, root;
  [[nodiscard]] std::uint32_t rank(std::uint32_t v) const { return (root + v) % ranks; }
  [[nodiscard]] std::uint32_t receiver(std::uint32_t couple) const { return rank(2 * couple - 1); }
  // The root takes the place of pair 0.
  [[nodiscard]] std::uint32_t sender(std::uint32_t couple) const { return rank(2 * couple); }
};

void add_root(Builder& builder, const Couples& couples, const TwoTrees& trees, Buffer source) {
  const bool left_over = couples.ranks % 2 == 0;
  for (unsigned tree = 0; tree < 2; ++tree) {
    const Operand from = Builder::operand(source, builder.constant(tree));
    const std::uint32_t pe = trees.root(tree);
    const std::uint32_t step = 2 * trees.edge(tree, pe).arrival;
    builder.send(step, couples.receiver(pe), from, 0);
    if (left_over) builder.send(step + 1, couples.rank(couples.ranks - 1), from, 0);
  }
}

void add_left_over(Builder& builder, const Couples& couples, const TwoTrees& trees) {
  for (unsigned tree = 0; tree < 2; ++tree) {
    const std::uint32_t step = 2 * trees.edge(tree, trees.root(tree)).arrival + 1;
    builder.receive(step, couples.root, builder.output(tree));
  }
}

void add_receiver(Builder& builder, const Couples& couples, const TwoTrees& trees,
                  std::uint32_t pe) {
  for (unsigned tree = 0; tree < 2; ++tree) {
    const Operand block = builder.output(tree);
    const std::uint32_t step = 2 * trees.edge(tree, pe).arrival;
    builder.receive(step, couples.sender(trees.parent(tree, pe)), block);
    builder.send(step + 1, couples.sender(pe), block, 1);
  }
}

void add_sender(Builder& builder, const Couples& couples, const TwoTrees& trees, std::uint32_t pe) {
  for (unsigned tree = 0; tree < 2; ++tree) {
    const Operand block = builder.output(tree);
    const Edge edge = trees.edge(tree, pe);
    const std::uint32_t step = 2 * edge.arrival + 1;
    builder.receive(step, couples.receiver(pe), block);
    for (const Edge& child : trees.children(tree, edge).of) {
      if (child.pe == 0) continue;
      builder.send(2 * child.arrival, couples.receiver(child.pe), block, 2 * child.arrival - step);
    }
  }
}

// One phase, in a schedule of `ranks` >= 3 ranks.
struct SimplexPhase {
  std::uint32_t ranks, root, me;

  // The position of this rank, counted from the root.
  [[nodiscard]] std::uint32_t position() const { return (me + ranks - root) % ranks; }
};

void end_pairs_phase(Builder& builder, const TwoTrees& trees) {
  builder.phase(4, 2 * static_cast<std::int32_t>(trees.last_arrival()) - 2, 4);
}

void add_simplex_broadcast(Builder& builder, const SimplexPhase& phase, Buffer source) {
  const Couples couples{phase.ranks, phase.root};
  const TwoTrees trees((phase.ranks - 1) / 2, Pairing::kShift);
  const std::uint32_t v = phase.position();
  if (v == 0) {
    add_root(builder, couples, trees, source);
  } else if (phase.ranks % 2 == 0 && v + 1 == phase.ranks) {
    add_left_over(builder, couples, trees);
  } else if (v % 2 == 1) {
    add_receiver(builder, couples, trees, (v + 1) / 2);
  } else {
    add_sender(builder, couples, trees, v / 2);
  }
  end_pairs_phase(builder, trees);
}

// A root gets the block of the rank left over one step before the pairs' sum, and adds its own
// block. So that rank is next to the root: the last one before root p-1, otherwise the first one.
bool left_over_is_last(const SimplexPhase& phase) { return phase.root + 1 == phase.ranks; }

void add_gathering_root(Builder& builder, const PairTrees& pairs, const SimplexPhase& phase) {
  const TwoTrees& trees = pairs.trees();
  const bool own_left = !left_over_is_last(phase);
  for (unsigned tree = 0; tree < 2; ++tree) {
    const std::uint32_t pe = trees.root(tree);
    const std::uint32_t step = 2 * (trees.last_arrival() - trees.edge(tree, pe).arrival) + 1;
    Operand own = builder.input(tree);
    if (phase.ranks % 2 == 0) {
      const Operand both = builder.slot(tree, builder.ring(1, 4));
      builder.receive(step - 1, pairs.rank(own_left ? 1 : phase.ranks - 1), both);
      builder.combine(step - 1, both, own_left ? own : both, own_left ? both : own);
      own = both;
    }
    const Operand sum = builder.slot(tree, builder.ring(0, 4));
    builder.receive(step, pairs.child_end(tree, pe), sum);
    builder.combine(step, builder.output(tree), own_left ? own : sum, own_left ? sum : own);
  }
}

void add_sending_left_over(Builder& builder, const TwoTrees& trees, std::uint32_t root) {
  for (unsigned tree = 0; tree < 2; ++tree) {
    const std::uint32_t arrival = trees.edge(tree, trees.root(tree)).arrival;
    builder.send(2 * (trees.last_arrival() - arrival), root, builder.input(tree), 0);
  }
}

void add_simplex_reduce(Builder& builder, const SimplexPhase& phase) {
  const TwoTrees trees((phase.ranks - 1) / 2, Pairing::kShift);
  const bool even = phase.ranks % 2 == 0;
  const std::uint32_t first = even && !left_over_is_last(phase) ? 2 : 1;
  const PairTrees pairs(trees, phase.ranks, phase.root, first);
  const std::uint32_t v = phase.position();
  if (v == 0) {
    add_gathering_root(builder, pairs, phase);
  } else if (even && v == (first == 2 ? 1 : phase.ranks - 1)) {
    add_sending_left_over(builder, trees, phase.root);
  } else {
    const PairTrees::Place place = pairs.place((v - first) / 2 + 1);
    for (unsigned tree = 0; tree < 2; ++tree) {
      add_pair_sum(builder, pairs, place, (v - first) % 2 == 1, tree, Kept::kNothing);
    }
  }
  end_pairs_phase(builder, trees);
}

// The same with one other rank: no trees.
void add_two_rank_broadcast(Builder& builder, const SimplexPhase& phase, Buffer source) {
  for (std::uint32_t half = 0; half < 2; ++half) {
    if (phase.me == phase.root) {
      const Operand from = Builder::operand(source, builder.constant(half));
      builder.send(half, 1 - phase.me, from, 0);
    } else {
      builder.receive(half, phase.root, builder.output(half));
    }
  }
  builder.phase(2, 0, 2);
}

void add_two_rank_reduce(Builder& builder, const SimplexPhase& phase) {
  for (std::uint32_t half = 0; half < 2; ++half) {
    const Operand own = builder.input(half);
    if (phase.me != phase.root) {
      builder.send(half, phase.root, own, 0);
      continue;
    }
    const Operand other = builder.slot(half, builder.ring(0, 2));
    builder.receive(half, 1 - phase.me, other);
    const bool own_left = phase.root == 0;
    builder.combine(half, builder.output(half), own_left ? own : other, own_left ? other : own);
  }
  builder.phase(2, 0, 2);
}

Status generate_two_tree_simplex(const CollectiveParameters& parameters, std::uint32_t me,
                                 Collective collective, Program& out) {
  const std::uint32_t p = parameters.ranks;
  const std::uint32_t root = collective == Collective::kAllreduce ? 0 : parameters.root;
  Builder builder(out);
  const Status status = builder.begin(
      parameters, me,
      {.collective = collective,
       .algorithm = "two-tree-simplex",
       .segments = 2,
       .needs_commutative = collective == Collective::kReduce && root != 0 && root + 1 != p,
       .port_model = PortModel::kSimplex});
  if (status != Status::kOk) return status;
  if (p == 1) return builder.finish_alone();
  const SimplexPhase phase{p, root, me};
  if (collective != Collective::kBroadcast) {
    p == 2 ? add_two_rank_reduce(builder, phase) : add_simplex_reduce(builder, phase);
  }
  if (collective != Collective::kReduce) {
    const Buffer source = collective == Collective::kBroadcast ? Buffer::kInput : Buffer::kOutput;
    p == 2 ? add_two_rank_broadcast(builder, phase, source)
           : add_simplex_broadcast(builder, phase, source);
  }
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kTwoTreeSimplexRows[] = {
    row("two-tree-simplex", Collective::kBroadcast, generate_two_tree_simplex,
        "two-tree for simplex ports, by couples: at most 4*ceil(log2(p+1))+4N-4 steps"),
    row("two-tree-simplex", Collective::kReduce, generate_two_tree_simplex,
        "two-tree for simplex ports, by couples: at most 4*ceil(log2(p+1))+4N-4 steps",
        {.needs_commutative = true}),
    row("two-tree-simplex", Collective::kAllreduce, generate_two_tree_simplex,
        "reduce, then broadcast for simplex ports: at most 8*ceil(log2(p+1))+8N-8 steps"),
};

}  // namespace espalier

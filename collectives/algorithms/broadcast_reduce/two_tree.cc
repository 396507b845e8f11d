// Broadcast, reduce and allreduce by two trees at once, each of which carries half of the message:
// full bandwidth with logarithmic start-up ([SST09], [SST07]; section 4).
//
// Let N be the blocks in each half, n = p-1, h = ceil(log2(n+2)), L = TwoTrees::last_arrival().
// Steps of broadcast and reduce: L + 1 + 2(N-1), which is between 2h + 2N - 5 and 2h + 2N - 2
// ([SST09]: at most 2h + 2k). Steps of allreduce: twice that. Cost: steps * (alpha + beta*m/2N).
// The minimum is at N = sqrt(beta*m*h / (2*alpha)): beta*m + 2*alpha*log2
// p + sqrt(8*alpha*beta*m*log2 p).
//
// The root is outside the trees and feeds (gathers from) their roots alternately. The other ranks,
// from the root onward, are the trees' ranks 1 .. n (`pe`). Segment 0 travels over T1, segment 1
// over T2. A reduce is the broadcast reversed in time. The trees are in order, so to root 0 or p-1
// operators need not be commutative. In two-tree-mirror T2 is the mirror image of T1; n must then
// be even.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/two_trees.h"
#include "collectives/build/phases.h"

namespace espalier {
namespace {

using Edge = TwoTrees::Edge;

struct TreesOfRank {
  const TwoTrees& trees;
  std::uint32_t ranks, root;
  std::uint32_t pe;      // the tree position of this rank; 0: the root
  TwoTrees::Both edges;  // into this rank; for the root: into the trees' roots, which it feeds

  [[nodiscard]] std::uint32_t rank(std::uint32_t other) const { return (root + other) % ranks; }
};

void end_phase(Builder& builder, const TwoTrees& trees) {
  builder.phase(2, static_cast<std::int32_t>(trees.last_arrival()) - 1, 2);
}

void add_broadcast(Builder& builder, const TreesOfRank& rank_trees, Buffer source) {
  const TwoTrees& trees = rank_trees.trees;
  for (unsigned tree = 0; tree < 2; ++tree) {
    const Edge& edge = rank_trees.edges.of[tree];
    if (rank_trees.pe == 0) {
      const Operand from = Builder::operand(source, builder.constant(tree));
      builder.send(edge.arrival, rank_trees.rank(edge.pe), from, 0);
      continue;
    }
    const Operand block = builder.output(tree);
    builder.receive(edge.arrival, rank_trees.rank(trees.parent(tree, rank_trees.pe)), block);
    const TwoTrees::Both children = trees.children(tree, edge);
    for (const Edge& child : children.of) {
      if (child.pe == 0) continue;
      builder.send(child.arrival, rank_trees.rank(child.pe), block, child.arrival - edge.arrival);
    }
  }
}

// Adds the actions of an inner rank for its children's sums in a reduce. Returns where the whole
// sum is, and sets `ready` to the step of its instance 0. The child that a broadcast reaches last
// sends first.
Operand add_inner_sum(Builder& builder, const TreesOfRank& rank_trees, unsigned tree,
                      const Operand& own, const Edge& edge, std::uint32_t& ready) {
  const TwoTrees::Both children = rank_trees.trees.children(tree, edge);
  const std::uint32_t last = rank_trees.trees.last_arrival();
  const bool left_first = children.of[0].arrival > children.of[1].arrival;
  const Edge& early = children.of[left_first ? 0 : 1];
  const Edge& late = children.of[left_first ? 1 : 0];
  if (early.pe == 0) return own;

  const Operand sum = builder.slot(tree, builder.ring(early.arrival - edge.arrival, 2));
  ready = last - early.arrival;
  builder.receive(ready, rank_trees.rank(early.pe), sum);
  builder.combine(ready, sum, left_first ? sum : own, left_first ? own : sum);
  if (late.pe == 0) return sum;

  const Operand slot = builder.slot(tree, builder.ring(0, 2));
  ready = last - late.arrival;
  builder.receive(ready, rank_trees.rank(late.pe), slot);
  builder.combine(ready, sum, left_first ? sum : slot, left_first ? slot : sum);
  return sum;
}

void add_reduce(Builder& builder, const TreesOfRank& rank_trees, Buffer own_buffer) {
  const TwoTrees& trees = rank_trees.trees;
  const std::uint32_t last = trees.last_arrival();
  for (unsigned tree = 0; tree < 2; ++tree) {
    const Edge& edge = rank_trees.edges.of[tree];
    const std::uint32_t step = last - edge.arrival;
    const Operand own = Builder::operand(own_buffer, builder.constant(tree));
    if (rank_trees.pe == 0) {
      const Operand slot = builder.slot(tree, builder.ring(0, 2));
      builder.receive(step, rank_trees.rank(edge.pe), slot);
      const bool own_left = rank_trees.root == 0;
      builder.combine(step, builder.output(tree), own_left ? own : slot, own_left ? slot : own);
      continue;
    }
    std::uint32_t ready = step;
    const Operand sum = add_inner_sum(builder, rank_trees, tree, own, edge, ready);
    builder.send(step, rank_trees.rank(trees.parent(tree, rank_trees.pe)), sum, step - ready);
  }
}

// Calls `add` for the trees of the member, if there is one, and ends the phase.
template <typename Add>
void add_trees(Builder& builder, const Member& member, Pairing pairing, const Add& add) {
  const std::uint32_t p = member.ranks;
  const TwoTrees trees(p - 1, pairing);
  if (member.exists()) {
    const std::uint32_t pe = (member.me + p - member.root) % p;
    const TwoTrees::Both fed{{trees.edge(0, trees.root(0)), trees.edge(1, trees.root(1))}};
    add(TreesOfRank{trees, p, member.root, pe, pe == 0 ? fed : trees.edges(pe)});
  }
  end_phase(builder, trees);
}

void add_pairs_broadcast(Builder& builder, const Member& member, Pairing pairing, Buffer source) {
  add_trees(builder, member, pairing,
            [&](const TreesOfRank& rank_trees) { add_broadcast(builder, rank_trees, source); });
}

void add_pairs_reduce(Builder& builder, const Member& member, Pairing pairing, Buffer own) {
  add_trees(builder, member, pairing,
            [&](const TreesOfRank& rank_trees) { add_reduce(builder, rank_trees, own); });
}

template <Pairing kPairing>
Status generate_two_tree(const CollectiveParameters& parameters, std::uint32_t me,
                         Collective collective, Program& out) {
  const std::uint32_t p = parameters.ranks;
  const std::uint32_t root = collective == Collective::kAllreduce ? 0 : parameters.root;
  Builder builder(out);
  const Status status = builder.begin(
      parameters, me,
      {.collective = collective,
       .algorithm = kPairing == Pairing::kMirror ? "two-tree-mirror" : "two-tree",
       .segments = 2,
       .needs_commutative = collective == Collective::kReduce && root != 0 && root + 1 != p});
  if (status != Status::kOk) return status;
  if (p == 1) return builder.finish_alone();
  if (kPairing == Pairing::kMirror && p % 2 == 0) return builder.refuse(Status::kUnsupported);
  const Member member{p, root, me};
  if (collective != Collective::kBroadcast) {
    add_pairs_reduce(builder, member, kPairing, Buffer::kInput);
  }
  if (collective == Collective::kBroadcast) {
    add_pairs_broadcast(builder, member, kPairing, Buffer::kInput);
  } else if (collective == Collective::kAllreduce) {
    add_pairs_broadcast(builder, member, kPairing, Buffer::kOutput);
  }
  return builder.finish_one_port();
}

}  // namespace

void add_two_tree_broadcast(Builder& builder, const Member& member, Buffer source) {
  add_pairs_broadcast(builder, member, Pairing::kShift, source);
}

void add_two_tree_reduce(Builder& builder, const Member& member, Buffer own) {
  add_pairs_reduce(builder, member, Pairing::kShift, own);
}

const Algorithm kTwoTreeRows[] = {
    row("two-tree", Collective::kBroadcast, generate_two_tree<Pairing::kShift>,
        "two pipelined trees, half the message each: at most 2*ceil(log2(p+1))+2N-2 steps"),
    row("two-tree", Collective::kReduce, generate_two_tree<Pairing::kShift>,
        "two pipelined trees, half the message each: at most 2*ceil(log2(p+1))+2N-2 steps",
        {.needs_commutative = true}),
    row("two-tree", Collective::kAllreduce, generate_two_tree<Pairing::kShift>,
        "reduce, then broadcast by two-tree: at most 4*ceil(log2(p+1))+4N-4 steps"),
};

const Algorithm kTwoTreeMirrorBroadcastRows[] = {
    row("two-tree-mirror", Collective::kBroadcast, generate_two_tree<Pairing::kMirror>,
        "two-tree with mirrored trees, odd p only: at most 2*ceil(log2(p+1))+2N-2 steps",
        {.needs_odd_ranks = true}),
};

const Algorithm kTwoTreeMirrorReduceRows[] = {
    row("two-tree-mirror", Collective::kReduce, generate_two_tree<Pairing::kMirror>,
        "two-tree with mirrored trees, odd p only: at most 2*ceil(log2(p+1))+2N-2 steps",
        {.needs_commutative = true, .needs_odd_ranks = true}),
};

}  // namespace espalier

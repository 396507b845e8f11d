// Broadcast by two trees for simplex ports, which send or receive in a step, not both ([SST09]
// section 5.2, [Sanders03] section 3). The ranks except the root form pairs (the paper's couples)
// of a receiver and a sender. Each pair takes the place of one rank of the trees.
//
// Steps: 2L + 2 + 4(N-1), with N blocks in each half and L = last_arrival() of the two trees of
// floor((p-1)/2) places: twice the two-tree's steps; 2N for p = 2. Cost:
// steps * (alpha + beta*m/2N), about 2*beta*m for long messages, which is optimal.
//
// In step 2j a pair does what its place in the trees does in step j: its sender sends, its receiver
// receives. In step 2j+1 the receiver passes the received block to the sender. If p is even, one
// rank is left over. The root, which only sends, sends each block to that rank in the steps in
// between.

#include "collectives/algorithms/build/builder.h"
#include "collectives/algorithms/trees/two_trees.h"
#include "espalier/collectives/algorithms/generators.h"

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

void add_root(Builder& builder, const Couples& couples, const TwoTrees& trees) {
  const bool left_over = couples.ranks % 2 == 0;
  for (unsigned tree = 0; tree < 2; ++tree) {
    const Operand from = builder.input(tree);
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

// The root and one other rank: no trees.
Status finish_pair(Builder& builder, std::uint32_t root, std::uint32_t me) {
  for (std::uint32_t half = 0; half < 2; ++half) {
    if (me == root) {
      builder.send(half, 1 - root, builder.input(half), 0);
    } else {
      builder.receive(half, root, builder.output(half));
    }
  }
  builder.phase(2, 0, 2);
  return builder.finish_one_port();
}

}  // namespace

Status two_tree_simplex_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                  Program& out) {
  Builder builder(out);
  const Status status = builder.begin(parameters, me,
                                      {.collective = Collective::kBroadcast,
                                       .algorithm = "two-tree-simplex",
                                       .segments = 2,
                                       .port_model = PortModel::kSimplex});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  if (p == 2) return finish_pair(builder, parameters.root, me);
  const Couples couples{p, parameters.root};
  const TwoTrees trees((p - 1) / 2, Pairing::kShift);
  const std::uint32_t v = (me + p - parameters.root) % p;
  if (v == 0) {
    add_root(builder, couples, trees);
  } else if (p % 2 == 0 && v + 1 == p) {
    add_left_over(builder, couples, trees);
  } else if (v % 2 == 1) {
    add_receiver(builder, couples, trees, (v + 1) / 2);
  } else {
    add_sender(builder, couples, trees, v / 2);
  }
  builder.phase(4, 2 * static_cast<std::int32_t>(trees.last_arrival()) - 2, 4);
  return builder.finish_one_port();
}

}  // namespace espalier

// Scan and exscan by two trees at once, each carrying half of the message, for operators that need
// not commute (003 section 2.3; 001 section 5.2 for the data flow).
//
// All p ranks are PEs 1 .. p of both trees, in rank order. Two phases. Up: every PE but those on a
// tree's right spine sends the sum of its subtree to its parent, as in a reduce; an inner PE keeps,
// block by block in OUTPUT, what comes from its left subtree (scan: with its own added). Down:
// every PE but those on the left spine gets the sum of all ranks before its subtree, hands it on to
// its left child, and adds what it kept for its own result and its right child.
//
// Steps, with N blocks in each half: up U + 2(N-1) and down D + 2(N-1), where U and D are one more
// than the distance between the first and the last arrival (TwoTrees) over the edges in use, the
// better of the two trees' starts taken for each phase. With h = ceil(log2(p+2)) that is at most
// 4h + 4N - 10 in all for the scan (in 003's count, N of both trees: 4h - 2 + 2(N-2)); an exscan
// may need one step more, for the left spine's own blocks are added before they are sent down.
// Cost: steps * (alpha + beta*m/2N).
//
// An exscan cannot keep its own block and its left subtree's sum in one place: INPUT and OUTPUT
// must differ there. A scan's may be the same.

#include "collectives/algorithms/builder.h"
#include "collectives/algorithms/generators.h"
#include "collectives/algorithms/two_trees.h"

namespace espalier {
namespace {

using Edge = TwoTrees::Edge;
using Arrivals = TwoTrees::Arrivals;

// One rank in one tree in one phase.
struct Seat {
  const TwoTrees& trees;
  Arrivals arrivals;
  unsigned tree;
  std::uint32_t pe;
  Edge edge, left, right;  // into this PE, to its children (pe 0: none)
  bool inclusive;

  [[nodiscard]] std::uint32_t up(const Edge& to) const { return arrivals.last - to.arrival; }
  [[nodiscard]] std::uint32_t down(const Edge& to) const { return to.arrival - arrivals.first; }
  [[nodiscard]] std::uint32_t parent() const { return trees.parent(tree, pe) - 1; }
};

constexpr std::uint32_t rank_of(const Edge& edge) { return edge.pe - 1; }

Seat seat_of(const TwoTrees& trees, const Arrivals& arrivals, unsigned tree, std::uint32_t pe,
             bool inclusive) {
  const Edge edge = trees.edge(tree, pe);
  const TwoTrees::Both children = trees.children(tree, edge);
  Seat seat{trees, arrivals, tree, pe, edge, {}, {}, inclusive};
  for (const Edge& child : children.of) {
    if (child.pe != 0) (child.pe < pe ? seat.left : seat.right) = child;
  }
  return seat;
}

// What comes from the left child; afterwards OUTPUT holds what the PE keeps. Returns where the sum
// of the left subtree is (in this step only, where the rank adds its own to it).
Place keep_left(Builder& builder, const Seat& at) {
  const std::uint32_t step = at.up(at.left);
  const Place kept = builder.output(at.tree);
  const Place sum = at.inclusive ? builder.slot(at.tree, builder.ring(0, 2)) : kept;
  builder.receive(step, rank_of(at.left), sum);
  if (at.inclusive) builder.combine(step, kept, sum, builder.input(at.tree));
  return sum;
}

// Up: the child that a broadcast reaches last sends first.
void add_up(Builder& builder, const Seat& at) {
  const unsigned tree = at.tree;
  const Place own = builder.input(tree);
  const bool sends = !at.trees.rightmost(tree, at.pe);
  const bool has_left = at.left.pe != 0, has_right = sends && at.right.pe != 0;
  const bool right_first = has_right && has_left && at.up(at.right) < at.up(at.left);
  Place sum = own;
  std::uint32_t ready = 0;
  if (has_left && !right_first) {
    const Place left = keep_left(builder, at);
    ready = at.up(at.left);
    sum = builder.output(tree);
    if (sends && !at.inclusive) {
      sum = builder.slot(tree, builder.ring(at.up(has_right ? at.right : at.edge) - ready, 2));
      builder.combine(ready, sum, left, own);
    }
  }
  if (has_right) {
    const std::uint32_t step = at.up(at.right);
    const Place right = builder.slot(tree, builder.ring(at.up(at.edge) - step, 2));
    builder.receive(step, rank_of(at.right), right);
    builder.combine(step, right, sum, right);
    sum = right;
    ready = step;
  }
  if (right_first) {
    const Place left = keep_left(builder, at);
    ready = at.up(at.left);
    builder.combine(ready, sum, left, sum);
  }
  if (sends) {
    const bool leaf = !has_left && !has_right;
    builder.send(at.up(at.edge), at.parent(), sum, leaf ? 0 : at.up(at.edge) - ready);
  }
}

// Down, on the left spine: nothing comes; the right child needs what was kept and the own block.
void add_down_left_spine(Builder& builder, const Seat& at) {
  const Place own = builder.input(at.tree), result = builder.output(at.tree);
  const bool has_left = at.left.pe != 0;
  if (!has_left && at.inclusive) builder.copy(0, result, own);
  if (at.right.pe == 0) return;
  const std::uint32_t step = at.down(at.right);
  if (!has_left) {
    builder.send(step, rank_of(at.right), own, 0);
  } else if (at.inclusive) {
    builder.send(step, rank_of(at.right), result, 0);
  } else {
    const Place sum = builder.slot(at.tree, builder.ring(1, 2));
    builder.combine(step - 1, sum, result, own);
    builder.send(step, rank_of(at.right), sum, 1);
  }
}

void add_down(Builder& builder, const Seat& at) {
  if (at.trees.leftmost(at.tree, at.pe)) return add_down_left_spine(builder, at);
  const Place own = builder.input(at.tree), result = builder.output(at.tree);
  const bool has_left = at.left.pe != 0, has_right = at.right.pe != 0;
  const std::uint32_t step = at.down(at.edge);
  // Without a left subtree what comes is an exscan's result.
  const bool direct = !at.inclusive && !has_left;
  const std::uint32_t held = has_left ? at.left.arrival - at.edge.arrival : 0;
  const Place before = direct ? result : builder.slot(at.tree, builder.ring(held, 2));
  builder.receive(step, at.parent(), before);
  if (!direct) builder.combine(step, result, before, has_left ? result : own);
  if (has_left) builder.send(at.down(at.left), rank_of(at.left), before, held);
  if (!has_right) return;
  const std::uint32_t after = at.right.arrival - at.edge.arrival;
  Place sum = result;
  if (!at.inclusive) {
    sum = builder.slot(at.tree, builder.ring(after, 2));
    builder.combine(step, sum, result, own);
  }
  builder.send(at.down(at.right), rank_of(at.right), sum, after);
}

// The first arrival at a PE to which the left spine sends a sum that it must combine before: the
// exscan's schedule begins a step earlier for it.
std::uint32_t first_combined(const TwoTrees& trees) {
  std::uint32_t first = 0xffffffffu;
  for (unsigned tree = 0; tree < 2; ++tree) {
    Edge at = trees.edge(tree, trees.root(tree));
    while (at.pe != 0) {
      Edge left, right;
      for (const Edge& child : trees.children(tree, at).of) {
        if (child.pe != 0) (child.pe < at.pe ? left : right) = child;
      }
      if (left.pe != 0 && right.pe != 0 && right.arrival < first) first = right.arrival;
      at = left;
    }
  }
  return first;
}

std::uint32_t length(const Arrivals& arrivals) { return arrivals.last + 1 - arrivals.first; }

Arrivals arrivals_of(const TwoTrees& trees, bool up, bool inclusive) {
  if (up) return trees.arrivals_but_rightmost();
  Arrivals arrivals = trees.arrivals_but_leftmost();
  if (!inclusive && first_combined(trees) == arrivals.first) --arrivals.first;
  return arrivals;
}

Status generate(const Group& group, std::uint32_t me, Collective collective, Program& out) {
  Builder builder(out);
  const Status status =
      builder.begin(group, me, {.collective = collective, .algorithm = "two-tree", .segments = 2});
  if (status != Status::kOk) return status;
  if (group.ranks == 1) return builder.finish_alone();
  const bool inclusive = collective == espalier_Collective_SCAN;
  for (const bool up : {true, false}) {
    TwoTrees trees(group.ranks, Pairing::kShift);
    const unsigned usual = trees.first();
    Arrivals arrivals = arrivals_of(trees, up, inclusive);
    trees.start_with(1 - usual);
    const Arrivals other = arrivals_of(trees, up, inclusive);
    if (length(other) < length(arrivals)) {
      arrivals = other;
    } else {
      trees.start_with(usual);
    }
    for (unsigned tree = 0; tree < 2; ++tree) {
      const Seat at = seat_of(trees, arrivals, tree, me + 1, inclusive);
      up ? add_up(builder, at) : add_down(builder, at);
    }
    builder.phase(2, static_cast<std::int32_t>(length(arrivals)) - 2, 2);
  }
  return builder.finish_one_port();
}

}  // namespace

Status two_tree_scan(const Group& group, std::uint32_t me, Program& out) {
  return generate(group, me, espalier_Collective_SCAN, out);
}

Status two_tree_exscan(const Group& group, std::uint32_t me, Program& out) {
  return generate(group, me, espalier_Collective_EXSCAN, out);
}

}  // namespace espalier

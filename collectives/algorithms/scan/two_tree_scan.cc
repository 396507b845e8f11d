// Scan and exscan by two trees at once, each of which carries half of the message, for operators
// that need not be commutative ([SST07] section 2.3; [SST09] section 4.3 and Fig. 4).
//
// All p ranks are ranks 1 .. p of both trees, in rank order. There are two phases. Up: every rank
// except those on a tree's right spine sends the sum of its subtree to its parent, as in a reduce.
// An inner rank keeps the blocks from its left subtree in OUTPUT (scan: with its own block added).
// Down: every rank except those on the left spine receives the sum of all ranks before its subtree
// and forwards it to its left child. It adds the kept blocks for its own result and for its right
// child.
//
// Steps, with N blocks in each half: U + D + 2 + 4(N-1), where U and D are last_arrival() of the
// two trees with Use::kUp and Use::kDown. With h = ceil(log2(p+2)) this is at most 4h + 4N - 10,
// with equality for p = 2^h - 2. ([SST07] gives 4h - 2 + 2(N-2), where N counts both trees' blocks:
// 4h + 4N - 6.) An exscan may need one step more, because the left spine's own blocks are added
// before they are sent down. Cost: steps * (alpha + beta*m/2N).
//
// two-tree-mirror has mirrored trees, whose ranks must be even in number. If p is odd, they are the
// ranks 1 .. p-1, and the last rank is above the roots of both trees ([SST09] section 3): up is a
// reduce to it, and nothing goes down from it. With h = ceil(log2(p+1)) a scan takes 4h + 4N - 10
// steps if p is even, otherwise 4h + 4N - 8 or one more; an exscan at most one step more.
//
// An exscan cannot keep its own block and its left subtree's sum in the same memory, so its INPUT
// and OUTPUT must differ. For a scan they may be the same.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/two_trees.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

using Edge = TwoTrees::Edge;

// One rank in one tree in one phase.
struct ScanNode {
  const TwoTrees& trees;
  unsigned tree;
  std::uint32_t pe;
  Edge edge, left, right;  // into this rank and to its children (pe 0: none)
  bool inclusive;
  std::uint32_t delay;  // of the phase, in steps
  std::uint32_t ranks;

  [[nodiscard]] std::uint32_t up(const Edge& to) const { return trees.last_arrival() - to.arrival; }
  [[nodiscard]] std::uint32_t down(const Edge& to) const { return to.arrival + delay; }
  // The last rank is above the roots.
  [[nodiscard]] std::uint32_t parent() const {
    const std::uint32_t above = trees.parent(tree, pe);
    return above == 0 ? ranks - 1 : above - 1;
  }
};

constexpr std::uint32_t rank_of(const Edge& edge) { return edge.pe - 1; }

// The children of the rank that `edge` leads to.
struct Children {
  Edge left, right;
};

Children children_of(const TwoTrees& trees, unsigned tree, const Edge& edge) {
  Children children;
  for (const Edge& child : trees.children(tree, edge).of) {
    if (child.pe != 0) (child.pe < edge.pe ? children.left : children.right) = child;
  }
  return children;
}

// Adds the receive from the left child; afterwards OUTPUT holds the blocks that the rank keeps.
// Returns where the sum of the left subtree is (valid only in this step if the rank adds its own
// block to it).
Operand keep_left(Builder& builder, const ScanNode& node) {
  const std::uint32_t step = node.up(node.left);
  const Operand kept = builder.output(node.tree);
  const Operand sum = node.inclusive ? builder.slot(node.tree, builder.ring(0, 2)) : kept;
  builder.receive(step, rank_of(node.left), sum);
  if (node.inclusive) builder.combine(step, kept, sum, builder.input(node.tree));
  return sum;
}

// Up: the child that a broadcast reaches last sends first.
void add_up(Builder& builder, const ScanNode& node) {
  const unsigned tree = node.tree;
  const Operand own = builder.input(tree);
  const bool sends = node.trees.in_use(tree, node.pe);
  const bool has_left = node.left.pe != 0, has_right = sends && node.right.pe != 0;
  const bool right_first = has_right && has_left && node.up(node.right) < node.up(node.left);
  Operand sum = own;
  std::uint32_t ready = 0;
  if (has_left && !right_first) {
    const Operand left = keep_left(builder, node);
    ready = node.up(node.left);
    sum = builder.output(tree);
    if (sends && !node.inclusive) {
      sum =
          builder.slot(tree, builder.ring(node.up(has_right ? node.right : node.edge) - ready, 2));
      builder.combine(ready, sum, left, own);
    }
  }
  if (has_right) {
    const std::uint32_t step = node.up(node.right);
    const Operand right = builder.slot(tree, builder.ring(node.up(node.edge) - step, 2));
    builder.receive(step, rank_of(node.right), right);
    builder.combine(step, right, sum, right);
    sum = right;
    ready = step;
  }
  if (right_first) {
    const Operand left = keep_left(builder, node);
    ready = node.up(node.left);
    builder.combine(ready, sum, left, sum);
  }
  if (sends) {
    const bool leaf = !has_left && !has_right;
    builder.send(node.up(node.edge), node.parent(), sum, leaf ? 0 : node.up(node.edge) - ready);
  }
}

// Down, on the left spine: nothing arrives; the right child needs the kept blocks and the own
// block.
void add_down_left_spine(Builder& builder, const ScanNode& node) {
  const Operand own = builder.input(node.tree), result = builder.output(node.tree);
  const bool has_left = node.left.pe != 0;
  if (!has_left && node.inclusive) builder.copy(0, result, own);
  if (node.right.pe == 0) return;
  const std::uint32_t step = node.down(node.right);
  if (!has_left) {
    builder.send(step, rank_of(node.right), own, 0);
  } else if (node.inclusive) {
    builder.send(step, rank_of(node.right), result, 0);
  } else {
    const Operand sum = builder.slot(node.tree, builder.ring(1, 2));
    builder.combine(step - 1, sum, result, own);
    builder.send(step, rank_of(node.right), sum, 1);
  }
}

void add_down(Builder& builder, const ScanNode& node) {
  if (!node.trees.in_use(node.tree, node.pe)) return add_down_left_spine(builder, node);
  const Operand own = builder.input(node.tree), result = builder.output(node.tree);
  const bool has_left = node.left.pe != 0, has_right = node.right.pe != 0;
  const std::uint32_t step = node.down(node.edge);
  // Without a left subtree the received sum is the result of an exscan.
  const bool direct = !node.inclusive && !has_left;
  const std::uint32_t held = has_left ? node.left.arrival - node.edge.arrival : 0;
  const Operand before = direct ? result : builder.slot(node.tree, builder.ring(held, 2));
  builder.receive(step, node.parent(), before);
  if (!direct) builder.combine(step, result, before, has_left ? result : own);
  if (has_left) builder.send(node.down(node.left), rank_of(node.left), before, held);
  if (!has_right) return;
  const std::uint32_t after = node.right.arrival - node.edge.arrival;
  Operand sum = result;
  if (!node.inclusive) {
    sum = builder.slot(node.tree, builder.ring(after, 2));
    builder.combine(step, sum, result, own);
  }
  builder.send(node.down(node.right), rank_of(node.right), sum, after);
}

// Whether the left spine sends down, in step 0, a value that it must first combine.
bool combines_first(const TwoTrees& trees) {
  for (unsigned tree = 0; tree < 2; ++tree) {
    Edge edge = trees.edge(tree, trees.root(tree));
    while (edge.pe != 0) {
      const Children children = children_of(trees, tree, edge);
      if (children.left.pe != 0 && children.right.pe != 0 && children.right.arrival == 0) {
        return true;
      }
      edge = children.left;
    }
  }
  return false;
}

// The ranks in the trees.
std::uint32_t tree_ranks(std::uint32_t p, Pairing pairing) {
  return pairing == Pairing::kMirror && p % 2 == 1 ? p - 1 : p;
}

void add_phase(Builder& builder, std::uint32_t p, std::uint32_t me, Pairing pairing, bool up,
               bool inclusive) {
  const std::uint32_t n = tree_ranks(p, pairing);
  const Use use = !up ? Use::kDown : n == p ? Use::kUp : Use::kAll;
  const TwoTrees trees(n, pairing, use);
  const std::uint32_t delay = !up && !inclusive && combines_first(trees) ? 1 : 0;
  for (unsigned tree = 0; tree < 2; ++tree) {
    if (me == n) {  // above both trees
      const Edge root = trees.edge(tree, trees.root(tree));
      const ScanNode node{trees, tree, me + 1, {}, root, {}, inclusive, delay, p};
      if (up) (void)keep_left(builder, node);
      continue;
    }
    const Edge edge = trees.edge(tree, me + 1);
    const Children children = children_of(trees, tree, edge);
    const ScanNode node{trees,          tree,      me + 1, edge, children.left,
                        children.right, inclusive, delay,  p};
    up ? add_up(builder, node) : add_down(builder, node);
  }
  builder.phase(2, static_cast<std::int32_t>(trees.last_arrival() + delay) - 1, 2);
}

template <Pairing kPairing>
Status generate_two_tree_scan(const CollectiveParameters& parameters, std::uint32_t me,
                              Collective collective, Program& out) {
  const char* algorithm = kPairing == Pairing::kMirror ? "two-tree-mirror" : "two-tree";
  Builder builder(out);
  const Status status = builder.begin(
      parameters, me, {.collective = collective, .algorithm = algorithm, .segments = 2});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  for (const bool up : {true, false}) {
    add_phase(builder, parameters.ranks, me, kPairing, up, collective == Collective::kScan);
  }
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kTwoTreeScanRows[] = {
    row("two-tree", Collective::kScan, generate_two_tree_scan<Pairing::kShift>,
        "up and down two pipelined trees: at most 4*ceil(log2(p+2))+4N-10 steps"),
    row("two-tree-mirror", Collective::kScan, generate_two_tree_scan<Pairing::kMirror>,
        "two-tree with mirrored trees: 4*ceil(log2(p+1))+4N-10 steps, up to 3 more if p is odd"),
    row("two-tree", Collective::kExscan, generate_two_tree_scan<Pairing::kShift>,
        "up and down two pipelined trees: at most 4*ceil(log2(p+2))+4N-9 steps"),
    row("two-tree-mirror", Collective::kExscan, generate_two_tree_scan<Pairing::kMirror>,
        "two-tree with mirrored trees: 4*ceil(log2(p+1))+4N-9 steps, up to 3 more if p is odd"),
};

}  // namespace espalier

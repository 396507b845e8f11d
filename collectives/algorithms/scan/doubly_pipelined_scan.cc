// Scan and exscan by one binary tree in order, up and down at the same time ("doubly pipelined"),
// for operators that need not be commutative ([SST09] sections 2 and 6.3, [SST07] section 2.3).
//
// Let N be the blocks, and U(p) and D(p) UpDownTree::steps_up() and steps_down(). Steps:
// U(p) + D(p) - 2 + 3(N-1), at most 4*floor(log2 p) + 3N - 5, with equality for p = 2^h - 1.
// ([SST07] gives 4h - 2 + 3(N-1), which is 4 more.) Cost: steps * (alpha + beta*m/N). The minimum
// is about 3*beta*m + 4*alpha*log2 p + sqrt(48*alpha*beta*m*log2 p). two-tree takes 4 steps for
// blocks of half the length: it is faster for long messages.
//
// Up: every rank except those on the right spine (the root and its chain of right children) sends
// the sum of its subtree to its parent. A rank keeps the blocks from its left subtree in OUTPUT
// (scan: with its own block added). Down: every rank except those on the left spine receives the
// sum of all ranks before its subtree and forwards it to its left child. It adds the kept blocks
// for its own result and for its right child. A rank of the left spine does not wait: it sends to
// its right child one step after its left child's sum arrived.
//
// An exscan cannot keep its own block and its left subtree's sum in the same memory, so its INPUT
// and OUTPUT must differ. For a scan they may be the same.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/up_down_tree.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

// One rank: its subtree, and whether no sum goes up (right spine) or down (left spine) over the
// edge above it.
struct UpDownNode {
  UpDownTree tree;
  bool inclusive;
  bool left_spine = true, right_spine = true;

  [[nodiscard]] bool has_left() const { return tree.left().size > 0; }
  // On the left spine the edge to the right child carries data up and down in the same step.
  [[nodiscard]] UpDownTree right() const {
    UpDownTree right = tree.right();
    if (left_spine) right.down = right.up;
    return right;
  }
  [[nodiscard]] bool has_right() const { return tree.right().size > 0; }
};

UpDownNode node_of(std::uint32_t p, std::uint32_t me, bool inclusive) {
  UpDownNode node{{0, p, UpDownTree::steps_up(p), 0, 0}, inclusive};
  while (node.tree.root() != me) {
    if (me < node.tree.root()) {
      node.tree = node.tree.left();
      node.right_spine = false;
    } else {
      node.tree = node.right();
      node.left_spine = false;
    }
  }
  return node;
}

// Adds the receive from the left child; afterwards OUTPUT holds the blocks that the rank keeps.
// Returns where the sum of the left subtree and the own block is, in this step and the next. An
// exscan does not need that sum if it goes neither up nor to the right child.
Operand keep_left(Builder& builder, const UpDownNode& node) {
  const Operand own = builder.input(0), kept = builder.output(0);
  const UpDownTree left = node.tree.left();
  if (!node.inclusive && node.right_spine && !node.left_spine) {
    builder.receive(left.up, left.root(), kept);
    // A later combine waits for the receives of its own step and for the copies before it.
    builder.copy(left.up, kept, kept);
    return kept;
  }
  const Operand sum = builder.slot(0, builder.ring(node.inclusive ? 0 : 1, 3));
  builder.receive(left.up, left.root(), node.inclusive ? sum : kept);
  if (node.inclusive) {
    builder.combine(left.up, kept, sum, own);
    return kept;
  }
  builder.combine(left.up, sum, kept, own);
  return sum;
}

// Adds the sums that go up, and those that the left spine sends to its right children.
void add_sums_up(Builder& builder, const UpDownNode& node) {
  const UpDownTree right = node.right();
  Operand sum = builder.input(0);
  if (node.has_left()) sum = keep_left(builder, node);
  if (node.left_spine && node.has_right()) {
    builder.send(right.down, right.root(), sum, node.has_left() ? 1 : 0);
  }
  if (node.right_spine) return;
  if (node.has_right()) {
    const Operand news = builder.slot(0, builder.ring(1, 3));
    builder.receive(right.up, right.root(), news);
    builder.combine(right.up, news, sum, news);
    sum = news;
  }
  builder.send(node.tree.up, node.tree.parent, sum, node.has_right() ? 1 : 0);
}

void add_sums_down(Builder& builder, const UpDownNode& node) {
  const Operand own = builder.input(0), result = builder.output(0);
  const std::uint32_t step = node.tree.down;
  if (node.left_spine) {
    if (node.inclusive && !node.has_left()) builder.copy(0, result, own);
    return;
  }
  // Without a left subtree the received sum is the result of an exscan.
  const bool direct = !node.inclusive && !node.has_left();
  const Operand before =
      direct ? result : builder.slot(0, builder.ring(node.has_left() ? 1 : 0, 3));
  builder.receive(step, node.tree.parent, before);
  if (!direct) builder.combine(step, result, before, node.has_left() ? result : own);
  if (node.has_left()) {
    builder.send(node.tree.left().down, node.tree.left().root(), before, 1);
  }
  if (!node.has_right()) return;
  Operand sum = result;
  if (!node.inclusive) {
    sum = builder.slot(0, builder.ring(2, 3));
    builder.combine(step, sum, result, own);
  }
  builder.send(node.right().down, node.right().root(), sum, 2);
}

Status generate_doubly_pipelined_scan(const CollectiveParameters& parameters, std::uint32_t me,
                                      Collective collective, Program& out) {
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me, {.collective = collective, .algorithm = "doubly-pipelined"});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  const UpDownNode node = node_of(p, me, collective == Collective::kScan);
  add_sums_up(builder, node);
  add_sums_down(builder, node);
  const std::uint32_t steps = UpDownTree::steps_up(p) + UpDownTree::steps_down(p) - 2;
  builder.phase(3, static_cast<std::int32_t>(steps) - 3, 3);
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kDoublyPipelinedScanRows[] = {
    row("doubly-pipelined", Collective::kScan, generate_doubly_pipelined_scan,
        "up and down one pipelined binary tree at once: at most 4*floor(log2 p)+3N-5 steps"),
    row("doubly-pipelined", Collective::kExscan, generate_doubly_pipelined_scan,
        "up and down one pipelined binary tree at once: at most 4*floor(log2 p)+3N-5 steps"),
};

}  // namespace espalier

// Allreduce by two binary trees, one on each half of the ranks: sums go up and results down at the
// same time (up_down_tree.h), and the two roots exchange their sums. Operators need not be
// commutative.
//
// Let N be the blocks, n = ceil(p/2), U(1) = 0, U(2) = 1, U(n) = 2 + U(floor((n-1)/2)), and
// D(1) = 0, D(n) = 2 + D(ceil((n-1)/2)). Steps: U(n) + D(n) + 1 + 3(N-1), at most
// 4*floor(log2 n) + 3N - 2. Cost: steps * (alpha + beta*m/N). The minimum is about
// 3*beta*m + 4*alpha*log2 p + sqrt(48*alpha*beta*m*log2 p). Source: [Traff21]. Simulated free
// running, 10 ranks and more take 3.5 to 3.7 steps per block, not 3. two-tree takes 4 for blocks of
// half the length: it is faster for long messages.
//
// [Traff21] numbers the trees in post-order. In order is better here: a rank adds its own block to
// the left child's sum in the step in which that arrives, and the right child's sum one step later.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/up_down_tree.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

// Adds the receives of the children's sums. Returns where the sum of the subtree is; with children
// it is made in the step before `up`.
Operand add_sums(Builder& builder, const UpDownTree& tree) {
  const Operand own = builder.input(0);
  if (tree.size == 1) return own;
  Operand sum = own;
  if (tree.left().size > 0) {
    sum = builder.slot(0, builder.ring(1, 3));
    builder.receive(tree.left().up, tree.left().root(), sum);
    builder.combine(tree.left().up, sum, sum, own);
  }
  const UpDownTree right = tree.right();
  const Operand news = builder.slot(0, builder.ring(1, 3));
  builder.receive(right.up, right.root(), news);
  builder.combine(right.up, news, sum, news);
  return news;
}

// Results go to OUTPUT by a copy, so INPUT and OUTPUT may be the same memory.
void add_dual_root(Builder& builder, std::uint32_t p, std::uint32_t me) {
  const std::uint32_t lower = p / 2;
  const std::uint32_t up = UpDownTree::steps_up(p - lower);
  const UpDownTree halves[] = {{0, lower, up, up, 0}, {lower, p - lower, up, up, 0}};
  const bool is_upper = me >= lower;
  UpDownTree tree = halves[is_upper ? 1 : 0];
  const std::uint32_t other_root = halves[is_upper ? 0 : 1].root();
  tree.parent = other_root;
  while (tree.root() != me) tree = me < tree.root() ? tree.left() : tree.right();
  const Operand sum = add_sums(builder, tree), result = builder.output(0);
  builder.send(tree.up, tree.parent, sum, tree.size == 1 ? 0 : 1);
  const Operand news = builder.slot(0, builder.ring(0, 3));
  builder.receive(tree.down, tree.parent, news);
  if (tree.parent == other_root) {
    builder.combine(tree.down, result, is_upper ? news : sum, is_upper ? sum : news);
  } else {
    builder.copy(tree.down, result, news);
  }
  for (const UpDownTree& child : {tree.left(), tree.right()}) {
    if (child.size == 0) continue;
    builder.send(child.down, child.root(), result, child.down - tree.down);
  }
  const std::uint32_t last = up + UpDownTree::steps_down(p - lower);
  builder.phase(3, static_cast<std::int32_t>(last) - 2, 3);
}

Status dual_root_allreduce(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                           Program& out) {
  Builder builder(out);
  const Status status = builder.begin(
      parameters, me, {.collective = Collective::kAllreduce, .algorithm = "dual-root"});
  if (status != Status::kOk) return status;
  if (parameters.ranks == 1) return builder.finish_alone();
  add_dual_root(builder, parameters.ranks, me);
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kDualRootRows[] = {
    row("dual-root", Collective::kAllreduce, dual_root_allreduce,
        "up and down two binary trees at once: at most 4*floor(log2((p+1)/2))+3N-2 steps"),
};

}  // namespace espalier

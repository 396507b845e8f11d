// Scan and exscan by two trees at once, for simplex ports, which send or receive in a step, not
// both ([SST09] section 5.2; scan/two_tree_scan.cc for the data flow). Operators need not be
// commutative.
//
// Ranks 2c-2 and 2c-1 form pair c (the paper's couple), c = 1 .. n, n = floor(p/2), at place c of
// both trees. If p is odd, rank p-1 gets both trees' sums from their roots, as the root of a reduce
// does. There are two phases: sums go up (build/pair_sums.h) and prefixes come down.
//
// Down: the rank that has the edge to the parent in the first phase has it in the second, too. With
// the same colours in both phases it is that rank which can go on. An upper rank kept the lower
// rank's sum in the first phase; so it needs only the prefix, which it also passes to the lower
// rank for the left child. A lower rank adds the sum that it kept, and passes the result to the
// upper rank. On a left spine there is no prefix; there a lower rank passes only what it kept.
//
// Steps for p >= 4, with N blocks in each half: 2U + 2D + 5 + 8(N-1). D = last_arrival() with
// Use::kDown. U = last_arrival() with Use::kUpSameColours if p is even, with Use::kAll if p is odd.
//  * One step more in an exscan, as in two_tree_scan.cc.
//  * One step more if p is even and the sum that a pair on a right spine keeps is passed last.
//  * Two steps more if a pair on a left spine passes the last prefix of its other tree later (p = 8
//    .. 11, 18 and 19).
// That is twice the steps of two_tree_scan.cc for n ranks and 1 to 7 more, in an exscan 1 to 8
// more. 2N steps for p = 2 and 4N for p = 3: one chain. Cost: steps * (alpha + beta*m/2N), about
// 4*beta*m for long messages.
//
// INPUT and OUTPUT of an exscan must differ. For a scan they may be the same.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/pair_sums.h"
#include "collectives/algorithms/trees/pair_trees.h"
#include "collectives/algorithms/trees/two_trees.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

using Edge = TwoTrees::Edge;

// One rank of a pair in one tree in the second phase.
class PairPrefix {
 public:
  PairPrefix(Builder& builder, const PairTrees& pairs, const PairTrees::Place& place, bool upper,
             unsigned tree, bool inclusive)
      : builder_(builder),
        pairs_(pairs),
        place_(place),
        tree_(tree),
        upper_(upper),
        inclusive_(inclusive),
        own_(builder.input(tree)),
        result_(builder.output(tree)) {
    if (tree == place.inner) left_ = place.left, right_ = place.right;
  }

  void add() {
    const bool below_left_spine = pairs_.trees().in_use(tree_, place_.pe);
    if (place_.upper_has_parent(tree_)) {
      if (below_left_spine) {
        upper_ ? add_upper_with_parent() : add_lower_after_upper();
      } else if (upper_) {
        add_right_of_kept();
      } else {
        copy_own();
      }
    } else if (upper_) {
      add_upper_after_lower();
    } else {
      below_left_spine ? add_lower_with_parent() : pass_kept();
    }
  }

  // Whether the pair passes the prefix of its leaf tree two steps later than otherwise, because the
  // lower rank passes what it kept in the inner tree in that step.
  [[nodiscard]] static bool is_late(const PairTrees& pairs, const PairTrees::Place& place) {
    const TwoTrees& trees = pairs.trees();
    return !trees.in_use(place.inner, place.pe) && place.right.pe != 0 &&
           !place.upper_has_parent(place.inner) && trees.in_use(1 - place.inner, place.pe);
  }

 private:
  // The step in which an edge is used. In an exscan what the left spine sends is combined before.
  [[nodiscard]] std::uint32_t step(const Edge& edge) const {
    return 2 * edge.arrival + (inclusive_ ? 1 : 2);
  }
  [[nodiscard]] std::uint32_t received() const { return step(place_.edges.of[tree_]); }
  [[nodiscard]] std::uint32_t partner() const { return pairs_.rank(place_.pe, !upper_); }
  [[nodiscard]] bool has_left() const { return left_.pe != 0; }

  // The step in which one rank of the pair passes its prefix to the other.
  [[nodiscard]] std::uint32_t pass_step() const {
    const TwoTrees& trees = pairs_.trees();
    if (trees.in_use(tree_, place_.pe)) {
      const bool late = tree_ != place_.inner && is_late(pairs_, place_);
      return received() + (late ? 3 : 1);
    }
    if (right_.pe != 0) return step(right_) - 1;
    // Only the upper rank needs it: in a step that the other tree leaves free.
    return tree_ == place_.inner ? (step(place_.edges.of[1 - tree_]) + 3) % 4
                                 : (inclusive_ ? 0 : 1);
  }

  void add_upper_with_parent() {
    const Operand before = builder_.slot(tree_, builder_.ring(pass_step() - received(), 4));
    builder_.receive(received(), pairs_.parent_end(tree_, place_.pe), before);
    builder_.combine(received(), result_, before, result_);
    builder_.send(pass_step(), partner(), before, pass_step() - received());
    send_right(received());
  }

  void add_lower_after_upper() {
    const std::uint32_t step_in = pass_step();
    // Without a left subtree the prefix is the result of an exscan.
    const bool direct = !inclusive_ && !has_left();
    const std::uint32_t wait = has_left() ? step(left_) - step_in : 0;
    const Operand before = direct ? result_ : builder_.slot(tree_, builder_.ring(wait, 4));
    builder_.receive(step_in, partner(), before);
    if (!direct) builder_.combine(step_in, result_, before, has_left() ? result_ : own_);
    if (has_left()) builder_.send(step(left_), pairs_.child_end(tree_, left_.pe), before, wait);
  }

  void add_lower_with_parent() {
    const std::uint32_t step_in = received(), wait = pass_step() - step_in;
    const bool direct = !inclusive_ && !has_left();
    const std::uint32_t left_wait = has_left() ? step(left_) - step_in : 0;
    const Operand before = direct ? result_ : builder_.slot(tree_, builder_.ring(left_wait, 4));
    builder_.receive(step_in, pairs_.parent_end(tree_, place_.pe), before);
    if (!direct) builder_.combine(step_in, result_, before, has_left() ? result_ : own_);
    Operand sum = result_;
    if (!inclusive_) {
      sum = builder_.slot(tree_, builder_.ring(wait, 4));
      builder_.combine(step_in, sum, result_, own_);
    }
    builder_.send(pass_step(), partner(), sum, wait);
    if (has_left()) {
      builder_.send(step(left_), pairs_.child_end(tree_, left_.pe), before, left_wait);
    }
  }

  void add_upper_after_lower() {
    const Operand before = inclusive_ ? builder_.slot(tree_, builder_.ring(0, 4)) : result_;
    builder_.receive(pass_step(), partner(), before);
    if (inclusive_) builder_.combine(pass_step(), result_, before, own_);
    send_right(pass_step());
  }

  // Sends the result to the right child; in an exscan with the own block. `ready`: the step in
  // which the result is complete.
  void send_right(std::uint32_t ready) {
    if (right_.pe == 0) return;
    const std::uint32_t wait = step(right_) - ready;
    Operand sum = result_;
    if (!inclusive_) {
      sum = builder_.slot(tree_, builder_.ring(wait, 4));
      builder_.combine(ready, sum, result_, own_);
    }
    builder_.send(step(right_), pairs_.child_end(tree_, right_.pe), sum, wait);
  }

  // On the left spine, where the first phase left the results.

  void add_right_of_kept() {
    if (right_.pe == 0) return;
    if (inclusive_) {
      builder_.send(step(right_), pairs_.child_end(tree_, right_.pe), result_, 0);
    } else {
      send_right(step(right_) - 1);
    }
  }

  void copy_own() {
    if (inclusive_ && !has_left()) builder_.copy(0, result_, own_);
  }

  void pass_kept() {
    copy_own();
    Operand sum = has_left() ? result_ : own_;
    const bool combines = has_left() && !inclusive_;
    if (combines) {
      sum = builder_.slot(tree_, builder_.ring(1, 4));
      builder_.combine(pass_step() - 1, sum, result_, own_);
    }
    builder_.send(pass_step(), partner(), sum, combines ? 1 : 0);
  }

  Builder& builder_;
  const PairTrees& pairs_;
  const PairTrees::Place& place_;
  unsigned tree_;
  bool upper_, inclusive_;
  Operand own_, result_;
  Edge left_{}, right_{};
};

// Whether a prefix that is passed late is one of those that arrive last.
bool ends_late(const PairTrees& pairs) {
  const TwoTrees& trees = pairs.trees();
  for (unsigned tree = 0; tree < 2; ++tree) {
    for (std::uint32_t pe = trees.root(tree); pe != 0 && trees.is_inner(tree, pe);) {
      const PairTrees::Place place = pairs.place(pe);
      if (PairPrefix::is_late(pairs, place) &&
          place.edges.of[1 - tree].arrival == trees.last_arrival()) {
        return true;
      }
      pe = place.left.pe;
    }
  }
  return false;
}

void add_down_phase(Builder& builder, std::uint32_t p, std::uint32_t me, bool inclusive) {
  const TwoTrees trees(p / 2, Pairing::kShift, Use::kDown);
  const PairTrees pairs(trees, p, p - 1);
  if (me < p / 2 * 2) {
    const PairTrees::Place place = pairs.place(me / 2 + 1);
    for (unsigned tree = 0; tree < 2; ++tree) {
      PairPrefix(builder, pairs, place, me % 2 == 1, tree, inclusive).add();
    }
  }
  const std::uint32_t end = 2 * trees.last_arrival() + (inclusive ? 3 : 4);
  builder.phase(4, static_cast<std::int32_t>(end + (ends_late(pairs) ? 2 : 0)) - 4, 4);
}

// Adds rank p-1 if p is odd: the sum of all other ranks comes from the trees' roots.
void add_last_rank(Builder& builder, const PairTrees& pairs, bool inclusive) {
  const TwoTrees& trees = pairs.trees();
  for (unsigned tree = 0; tree < 2; ++tree) {
    const std::uint32_t pe = trees.root(tree), step = pair_sum_step(trees, trees.edge(tree, pe));
    const Operand result = builder.output(tree);
    const Operand before = inclusive ? builder.slot(tree, builder.ring(0, 4)) : result;
    builder.receive(step, pairs.child_end(tree, pe), before);
    if (inclusive) builder.combine(step, result, before, builder.input(tree));
  }
}

void add_up_phase(Builder& builder, std::uint32_t p, std::uint32_t me, bool inclusive) {
  const bool odd = p % 2 == 1;
  const TwoTrees trees(p / 2, Pairing::kShift, odd ? Use::kAll : Use::kUpSameColours);
  const PairTrees pairs(trees, p, p - 1);
  if (odd && me + 1 == p) {
    add_last_rank(builder, pairs, inclusive);
  } else {
    const PairTrees::Place place = pairs.place(me / 2 + 1);
    for (unsigned tree = 0; tree < 2; ++tree) {
      add_pair_sum(builder, pairs, place, me % 2 == 1, tree,
                   inclusive ? Kept::kInclusive : Kept::kExclusive);
    }
  }
  builder.phase(4, static_cast<std::int32_t>(pair_sum_steps(pairs, !odd)) - 4, 4);
}

// Two or three ranks are a chain.
void add_short_chain(Builder& builder, std::uint32_t p, std::uint32_t me, bool inclusive) {
  const std::uint32_t period = 2 * (p - 1);
  for (unsigned half = 0; half < 2; ++half) {
    const std::uint32_t step = half * (p - 1) + me;  // of the send to the next rank
    const bool last = me + 1 == p;
    const Operand own = builder.input(half), result = builder.output(half);
    if (me == 0) {
      if (inclusive) builder.copy(step, result, own);
      builder.send(step, 1, own, 0);
      continue;
    }
    const Operand before = inclusive ? builder.slot(half, builder.ring(0, period)) : result;
    builder.receive(step - 1, me - 1, before);
    Operand sum = result;
    if (inclusive) {
      builder.combine(step - 1, result, before, own);
    } else if (!last) {
      sum = builder.slot(half, builder.ring(1, period));
      builder.combine(step - 1, sum, before, own);
    }
    if (!last) builder.send(step, me + 1, sum, 1);
  }
  builder.phase(period, 0, static_cast<std::int32_t>(period));
}

Status generate_two_tree_simplex_scan(const CollectiveParameters& parameters, std::uint32_t me,
                                      Collective collective, Program& out) {
  Builder builder(out);
  const Status status = builder.begin(parameters, me,
                                      {.collective = collective,
                                       .algorithm = "two-tree-simplex",
                                       .segments = 2,
                                       .port_model = PortModel::kSimplex});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  const bool inclusive = collective == Collective::kScan;
  if (p == 1) return builder.finish_alone();
  if (p < 4) {
    add_short_chain(builder, p, me, inclusive);
  } else {
    add_up_phase(builder, p, me, inclusive);
    add_down_phase(builder, p, me, inclusive);
  }
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kTwoTreeSimplexScanRows[] = {
    row("two-tree-simplex", Collective::kScan, generate_two_tree_simplex_scan,
        "two-tree for simplex ports, by couples: at most 8*ceil(log2(p+4))+8N-21 steps"),
    row("two-tree-simplex", Collective::kExscan, generate_two_tree_simplex_scan,
        "two-tree for simplex ports, by couples: at most 8*ceil(log2(p+4))+8N-20 steps"),
};

}  // namespace espalier

#include "collectives/algorithms/trees/pair_sums.h"

namespace espalier {
namespace {

using Edge = TwoTrees::Edge;

// Whether the pair sends nothing to its parent in the tree in which it has children, but its upper
// rank needs the lower rank's sum in the second phase of a scan.
bool only_keeps(const PairTrees& pairs, const PairTrees::Place& place) {
  return !pairs.trees().in_use(place.inner, place.pe) && place.upper_has_parent(place.inner) &&
         place.left.pe != 0;
}

// The step in which the lower rank passes that sum: one step after the left subtree's sum arrived.
// Therefore in the other tree a sum is passed two steps earlier than otherwise. If that is
// impossible, the sum to be kept is passed two steps later.
std::uint32_t kept_step(const PairTrees& pairs, const PairTrees::Place& place) {
  const TwoTrees& trees = pairs.trees();
  const unsigned leaf = 1 - place.inner;
  const bool other_first =
      trees.in_use(leaf, place.pe) && pair_sum_step(trees, place.edges.of[leaf]) == 1;
  return pair_sum_step(trees, place.left) + (other_first ? 3 : 1);
}

class PairSum {
 public:
  PairSum(Builder& builder, const PairTrees& pairs, const PairTrees::Place& place, bool upper,
          unsigned tree, Kept kept)
      : builder_(builder),
        pairs_(pairs),
        place_(place),
        upper_(upper),
        tree_(tree),
        kept_(kept),
        sends_(pairs.trees().in_use(tree, place.pe)),
        upper_sends_(place.upper_has_parent(tree)),
        own_(builder.input(tree)),
        pass_(pass_step()) {}

  void add() {
    const Edge& child = upper_ ? place_.right : place_.left;
    const bool passes = sends_ || (upper_sends_ && kept_ != Kept::kNothing);
    Operand sum = own_;
    std::uint32_t wait = 0;
    if (tree_ == place_.inner && child.pe != 0 && (sends_ || !upper_)) {
      wait = pass_ - step(child);
      sum = add_child(child, passes, wait);
    }
    if (!passes) return;
    if (upper_ != upper_sends_) {
      builder_.send(pass_, partner(), sum, wait);
    } else {
      add_partner(sum);
    }
  }

 private:
  [[nodiscard]] std::uint32_t step(const Edge& edge) const {
    return pair_sum_step(pairs_.trees(), edge);
  }
  [[nodiscard]] std::uint32_t partner() const { return pairs_.rank(place_.pe, !upper_); }

  // The step in which one rank of the pair passes its sum to the other. In the tree without
  // children: step 0 if only the upper rank needs it.
  [[nodiscard]] std::uint32_t pass_step() const {
    if (tree_ == place_.inner) {
      if (sends_) return step(place_.edges.of[tree_]) - 1;
      return place_.left.pe == 0 ? 0 : kept_step(pairs_, place_);
    }
    if (!sends_) return 0;
    const bool earlier = kept_ != Kept::kNothing && only_keeps(pairs_, place_);
    const std::uint32_t send_step = step(place_.edges.of[tree_]);
    return send_step - (earlier && send_step > 1 ? 3 : 1);
  }

  // Adds the receive of a child's sum. Returns where it is with the own block added.
  Operand add_child(const Edge& child, bool passes, std::uint32_t wait) {
    const bool keeps = !upper_ && kept_ != Kept::kNothing;
    const bool inclusive = kept_ == Kept::kInclusive;
    const Operand output = builder_.output(tree_);
    const bool direct = keeps && !inclusive;
    if (direct && !passes) {
      builder_.receive(step(child), pairs_.child_end(tree_, child.pe), output);
      return output;
    }
    const Operand slot = builder_.slot(tree_, builder_.ring(keeps && inclusive ? 0 : wait, 4));
    const Operand from = direct ? output : slot, sum = keeps && inclusive ? output : slot;
    builder_.receive(step(child), pairs_.child_end(tree_, child.pe), from);
    builder_.combine(step(child), sum, upper_ ? own_ : from, upper_ ? from : own_);
    return sum;
  }

  // Adds the receive of the partner's sum, what the rank keeps, and the send to the parent. `sum`:
  // the rank's own block and child.
  void add_partner(const Operand& sum) {
    const Operand output = builder_.output(tree_);
    const bool keeps = upper_ && kept_ != Kept::kNothing;
    const bool inclusive = keeps && kept_ == Kept::kInclusive;
    const bool alone = tree_ != place_.inner || place_.right.pe == 0;  // an upper rank's `sum`
    const std::uint32_t send_step = sends_ ? step(place_.edges.of[tree_]) : pass_;
    const std::uint32_t wait = send_step - pass_;
    // The sum to be sent is the one that is kept.
    const bool same = inclusive && (alone || !sends_);
    const bool direct = keeps && !inclusive;
    Operand both = output;
    if (!direct || sends_) both = builder_.slot(tree_, builder_.ring(same ? 0 : wait, 4));
    const Operand from = direct ? output : both;
    builder_.receive(pass_, partner(), from);
    if (inclusive) builder_.combine(pass_, output, both, own_);
    if (!sends_) return;
    if (!same) builder_.combine(pass_, both, upper_ ? from : sum, upper_ ? sum : from);
    builder_.send(send_step, pairs_.parent_end(tree_, place_.pe), same ? output : both, wait);
  }

  Builder& builder_;
  const PairTrees& pairs_;
  const PairTrees::Place& place_;
  bool upper_;
  unsigned tree_;
  Kept kept_;
  bool sends_;        // to the parent
  bool upper_sends_;  // otherwise the lower rank
  Operand own_;
  std::uint32_t pass_;
};

}  // namespace

void add_pair_sum(Builder& builder, const PairTrees& pairs, const PairTrees::Place& place,
                  bool upper, unsigned tree, Kept kept) {
  PairSum(builder, pairs, place, upper, tree, kept).add();
}

std::uint32_t pair_sum_steps(const PairTrees& pairs, bool kept) {
  const TwoTrees& trees = pairs.trees();
  std::uint32_t last = 2 * trees.last_arrival() + 1;
  for (unsigned tree = 0; kept && tree < 2; ++tree) {
    for (std::uint32_t pe = trees.root(tree); pe != 0 && trees.is_inner(tree, pe);) {
      const PairTrees::Place place = pairs.place(pe);
      if (only_keeps(pairs, place)) {
        const std::uint32_t step = kept_step(pairs, place);
        if (step > last) last = step;
      }
      pe = place.right.pe;
    }
  }
  return last + 1;
}

}  // namespace espalier

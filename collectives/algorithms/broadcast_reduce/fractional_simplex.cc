// Broadcast and reduce by a fractional tree of pairs of ranks (the paper's couples), for ports that
// send or receive, but not both in a step ([Sanders03], section 1, footnote 2).
//
// Steps: twice the steps of fractional.cc for ceil(p/2) ranks: 2(d + N + ceil(N/r) - 1), where d =
// min{i : P_i >= ceil(p/2)} - 1. 2N for p = 3 and 4, N for p = 2. One step less if p is odd and the
// tree of pairs is a chain of at least three pairs. Cost: steps * (alpha + beta*m/N). kTooLarge: r
// above kMaxSimplexRunLength, in a reduce above kMaxSimplexReduceRunLength.
// searched/fractional_direct.cc needs no pairs.
//
// Each pair takes one place in the tree. In even steps one rank of the pair, the receiver, gets a
// block from another pair, while the other rank, the sender, sends a block. In odd steps the
// receiver passes its block to the sender. The root is the sender of its pair. If p is odd, the
// last place, which feeds no other, is a single rank.
//
// A reduce is the broadcast reversed in time, blocks included: its block j is block r-1-j of the
// broadcast. As in fractional.cc, ranks stay in order, and to root 0 or p-1 operators need not be
// commutative. A sum grows by the pair's other rank, by the down and by the right successor, in
// this order.

#include <algorithm>

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/fractional_tree.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

// Ranks are counted from the root: pair u > 0 is receiver 2u and sender 2u+1; pair 0 is the root
// and its partner.
std::uint32_t receiver(std::uint32_t couple) { return couple == 0 ? 1 : 2 * couple; }
std::uint32_t sender(std::uint32_t couple) { return couple == 0 ? 0 : 2 * couple + 1; }

Count steps_of(const FractionalTree& tree, std::uint32_t p) {
  Count steps = tree.steps();
  const auto couples = static_cast<std::int32_t>((p + 1) / 2);
  const bool chain_end_alone = p % 2 == 1 && couples > 2 && tree.last_arrival() == couples - 2;
  steps.a = 2 * steps.a - (chain_end_alone ? 1 : 0);
  steps.b *= 2;
  steps.c *= 2;
  return steps;
}

// A rank, its pair, and the pair's steps.
class Couple {
 public:
  Couple(Builder& builder, const FractionalTree& tree, const TreeOrder& order, std::uint32_t me)
      : builder_(builder),
        tree_(tree),
        order_(order),
        at_(order.virtual_rank(me)),
        couple_(at_ / 2),
        seat_(tree.seat(couple_)) {}

 protected:
  [[nodiscard]] std::uint32_t rank(std::uint32_t position) const { return order_.rank(position); }
  [[nodiscard]] bool is_sender() const { return at_ == sender(couple_); }
  // The step of the tree after the one in which this place gets its block 0.
  [[nodiscard]] std::uint32_t next() const { return static_cast<std::uint32_t>(seat_.arrival + 1); }
  // The odd step in which the pair shares block j: it follows the even step in which the pair
  // received the block. The root's pair shares block j in step j of the tree.
  [[nodiscard]] std::uint32_t shared(std::uint32_t j) const {
    return 2 * ((couple_ == 0 ? 0 : next() - 1) + j) + 1;
  }
  // The steps in which the sender feeds block j down, and its block of a run to the right.
  [[nodiscard]] std::uint32_t fed_down(std::uint32_t j) const { return 2 * (next() + j); }
  [[nodiscard]] std::uint32_t fed_right() const { return 2 * (next() + tree_.run_length()); }
  // The sender from which a pair other than the root's gets block j.
  [[nodiscard]] std::uint32_t feeder(std::uint32_t j) const {
    if (seat_.position > 0) return sender(couple_ - 1);
    return sender(seat_.from_group + (seat_.is_right ? j : tree_.run_length() - 1));
  }
  // Block j of every run.
  [[nodiscard]] Operand block(Operand operand, std::uint32_t j) {
    Index row{};
    row.base = static_cast<std::int32_t>(j);
    row.coef = static_cast<std::int32_t>(tree_.run_length());
    operand.block_ref = builder_.index(row);
    return operand;
  }

  Builder& builder_;
  const FractionalTree& tree_;
  TreeOrder order_;
  std::uint32_t at_;  // virtual rank
  std::uint32_t couple_;
  FractionalTree::Seat seat_;
};

class BroadcastCouple : public Couple {
 public:
  using Couple::Couple;

  void add() {
    for (std::uint32_t j = 0; j < tree_.run_length(); ++j) {
      if (is_sender()) {
        add_sender(j);
      } else {
        add_receiver(j);
      }
    }
    if (!is_sender() || seat_.right == 0) return;
    // Block i was received 2(r+1-i) - 1 steps earlier, in an odd step.
    const std::uint32_t wait = 2 * (tree_.run_length() + 1 - seat_.position) - 1;
    builder_.send(fed_right(), rank(receiver(seat_.right)), data(seat_.position),
                  at_ == 0 ? 0 : wait);
  }

 private:
  [[nodiscard]] Operand data(std::uint32_t j) {
    return block(at_ == 0 ? builder_.input(0) : builder_.output(0), j);
  }

  void add_receiver(std::uint32_t j) {
    if (couple_ == 0) {
      builder_.receive(shared(j), rank(0), data(j));
      return;
    }
    builder_.receive(shared(j) - 1, rank(feeder(j)), data(j));
    if (at_ + 1 < order_.ranks) builder_.send(shared(j), rank(at_ + 1), data(j), 1);
  }

  void add_sender(std::uint32_t j) {
    if (couple_ == 0) {
      builder_.send(shared(j), rank(1), data(j), 0);
    } else {
      builder_.receive(shared(j), rank(at_ - 1), data(j));
    }
    if (seat_.down == 0) return;
    builder_.send(fed_down(j), rank(receiver(seat_.down)), data(j), couple_ == 0 ? 0 : 1);
  }
};

class ReduceCouple : public Couple {
 public:
  ReduceCouple(Builder& builder, const FractionalTree& tree, const TreeOrder& order,
               std::uint32_t me)
      : Couple(builder, tree, order, me),
        last_(static_cast<std::uint32_t>(
                  count_value(steps_of(tree, order.ranks), tree.run_length())) -
              1) {}

  void add() {
    if (is_sender() && seat_.right != 0) add_right();
    for (std::uint32_t j = tree_.run_length(); j-- > 0;) {
      if (is_sender()) {
        add_sender(j);
      } else {
        add_receiver(j);
      }
    }
  }

 private:
  // Steps and blocks, j too, are those of the broadcast.
  [[nodiscard]] std::uint32_t reversed(std::uint32_t step) const { return last_ - step; }
  [[nodiscard]] Operand sum(const Operand& operand, std::uint32_t j) {
    return block(operand, tree_.run_length() - 1 - j);
  }
  // A slot for a block that is used up to `lifetime` steps after its receive.
  [[nodiscard]] Operand slot(std::uint32_t j, std::uint32_t lifetime) {
    return sum(builder_.slot(0, builder_.ring(lifetime, 2 * tree_.period())), j);
  }
  Action& combine(std::uint32_t step, const Operand& into, const Operand& near,
                  const Operand& far) {
    return builder_.combine(step, into, order_.descends ? far : near, order_.descends ? near : far);
  }

  // Steps from the right successor's sum to the down successor's one of the same block.
  [[nodiscard]] std::uint32_t right_wait() const {
    return 2 * (tree_.run_length() - seat_.position);
  }
  void add_right() {
    right_ = slot(seat_.position, right_wait());
    builder_.receive(reversed(fed_right()), rank(receiver(seat_.right)), right_);
  }

  void add_receiver(std::uint32_t j) {
    Operand own = sum(builder_.input(0), j);
    if (couple_ == 0) {
      builder_.send(reversed(shared(j)), rank(0), own, 0);
      return;
    }
    const bool alone = at_ + 1 == order_.ranks;
    if (!alone) {
      const Operand pair = slot(j, 1);
      builder_.receive(reversed(shared(j)), rank(at_ + 1), pair);
      combine(reversed(shared(j)), pair, own, pair);
      own = pair;
    }
    builder_.send(reversed(shared(j) - 1), rank(feeder(j)), own, alone ? 0 : 1);
  }

  void add_sender(std::uint32_t j) {
    const bool sink = couple_ == 0;
    Operand own = sum(builder_.input(0), j);
    const Operand out = sum(builder_.output(0), j);
    if (sink) {
      const Operand pair = slot(j, 0);
      builder_.receive(reversed(shared(j)), rank(1), pair);
      combine(reversed(shared(j)), out, own, pair);
      own = out;
    }
    if (seat_.down != 0) {
      const std::uint32_t step = reversed(fed_down(j));
      const Operand down = slot(j, sink ? 0 : 1);
      builder_.receive(step, rank(receiver(seat_.down)), down);
      const Operand into = sink ? out : down;
      combine(step, into, own, down);
      if (seat_.right != 0 && j == seat_.position) {
        combine(step, into, into, right_).after = static_cast<std::uint16_t>(right_wait());
      }
      own = into;
    }
    if (!sink) {
      builder_.send(reversed(shared(j)), rank(at_ - 1), own, seat_.down != 0 ? 1 : 0);
    }
  }

  std::uint32_t last_;  // last step of the first run
  Operand right_{};     // the right successor's sum
};

// The root and one other rank: no tree.
void add_pair(Builder& builder, bool reduces, bool is_root, std::uint32_t other) {
  if (is_root == reduces) {
    const Operand slot = reduces ? builder.slot(0, builder.ring(0, 1)) : builder.output(0);
    builder.receive(0, other, slot);
    if (!reduces) return;
    const bool is_first = other == 1;
    builder.combine(0, builder.output(0), is_first ? builder.input(0) : slot,
                    is_first ? slot : builder.input(0));
  } else {
    builder.send(0, other, builder.input(0), 0);
  }
}

Status generate_fractional_simplex(const CollectiveParameters& parameters, std::uint32_t me,
                                   Collective collective, Program& out) {
  const std::uint32_t p = parameters.ranks;
  const bool reduces = collective == Collective::kReduce;
  const bool to_last = reduces && parameters.root != 0 && parameters.root + 1 == p;
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me,
                    {.collective = collective,
                     .algorithm = "fractional-simplex",
                     .needs_commutative = reduces && parameters.root != 0 && !to_last,
                     .port_model = PortModel::kSimplex});
  if (status != Status::kOk) return status;
  const std::uint32_t longest = reduces ? kMaxSimplexReduceRunLength : kMaxSimplexRunLength;
  if (parameters.run_length > longest) return builder.refuse(Status::kTooLarge);
  if (p == 1) return builder.finish_alone();
  if (p == 2) {
    add_pair(builder, reduces, me == parameters.root, 1 - me);
    builder.phase(1, 0, 1);
    return builder.finish_one_port();
  }
  const FractionalTree tree((p + 1) / 2, std::min(fractional_run_length(parameters), longest));
  const TreeOrder order{p, parameters.root, to_last};
  if (reduces) {
    ReduceCouple(builder, tree, order, me).add();
  } else {
    BroadcastCouple(builder, tree, order, me).add();
  }
  builder.phase(2 * tree.period(), steps_of(tree, p));
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kFractionalSimplexRows[] = {
    row("fractional-simplex", Collective::kBroadcast, generate_fractional_simplex,
        "fractional for simplex ports, by couples: 2(d+N+ceil(N/r)-1) steps, d that of p/2",
        {.max_run_length = kMaxSimplexRunLength}),
    row("fractional-simplex", Collective::kReduce, generate_fractional_simplex,
        "fractional for simplex ports, by couples: 2(d+N+ceil(N/r)-1) steps, d that of p/2",
        {.needs_commutative = true, .max_run_length = kMaxSimplexReduceRunLength}),
};

}  // namespace espalier

// Broadcast by a fractional tree of pairs of ranks (the paper's couples), for ports that send or
// receive, but not both in a step ([Sanders03], section 1, footnote 2).
//
// Steps: twice those of fractional.cc for half as many ranks: 2(d + N + ceil(N/r) - 1), d = min{i :
// P_i >= ceil(p/2)} - 1. 2N for p = 3 and 4, N for p = 2. One step less if p is odd and the tree of
// pairs is a chain of at least three pairs. Cost: steps * (alpha + beta*m/N). kTooLarge: r above
// kMaxSimplexRunLength. searched/fractional_direct.cc needs no pairs.
//
// Each pair takes one place in the tree. In even steps one rank of the pair, the receiver, gets a
// block from another pair, while the other rank, the sender, sends a block. In odd steps the
// receiver passes its block to the sender. The root is the sender of its pair. If p is odd, the
// last place, which feeds no other, is a single rank.

#include "collectives/algorithms/build/builder.h"
#include "collectives/algorithms/trees/fractional_tree.h"
#include "espalier/collectives/algorithms/generators.h"

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

class Couple {
 public:
  Couple(Builder& builder, const FractionalTree& tree, const CollectiveParameters& parameters,
         std::uint32_t me)
      : builder_(builder),
        tree_(tree),
        ranks_(parameters.ranks),
        root_(parameters.root),
        at_((me + ranks_ - root_) % ranks_),
        couple_(at_ / 2),
        seat_(tree.seat(couple_)) {}

  void add() {
    for (std::uint32_t j = 0; j < tree_.run_length(); ++j) {
      if (at_ == receiver(couple_)) {
        add_receiver(j);
      } else {
        add_sender(j);
      }
    }
    if (at_ != sender(couple_) || seat_.right == 0) return;
    // Block i was received 2(r+1-i) - 1 steps earlier, in an odd step.
    const std::uint32_t wait = 2 * (tree_.run_length() + 1 - seat_.position) - 1;
    builder_.send(2 * (next() + tree_.run_length()), rank(receiver(seat_.right)),
                  block(seat_.position), at_ == 0 ? 0 : wait);
  }

 private:
  [[nodiscard]] std::uint32_t rank(std::uint32_t position) const {
    return (root_ + position) % ranks_;
  }
  // The step of the tree after the one in which this place gets its block 0.
  [[nodiscard]] std::uint32_t next() const { return static_cast<std::uint32_t>(seat_.arrival + 1); }
  // The odd step in which the pair shares block j: it follows the even step in which the pair
  // received the block. The root's pair shares block j in step j of the tree.
  [[nodiscard]] std::uint32_t shared(std::uint32_t j) const {
    return 2 * ((couple_ == 0 ? 0 : next() - 1) + j) + 1;
  }
  // Block j of every run.
  [[nodiscard]] Operand block(std::uint32_t j) {
    Operand operand = at_ == 0 ? builder_.input(0) : builder_.output(0);
    Index row{};
    row.base = static_cast<std::int32_t>(j);
    row.coef = static_cast<std::int32_t>(tree_.run_length());
    operand.block_ref = builder_.index(row);
    return operand;
  }

  void add_receiver(std::uint32_t j) {
    if (couple_ == 0) {
      builder_.receive(shared(j), rank(0), block(j));
      return;
    }
    std::uint32_t from = couple_ - 1;
    if (seat_.position == 0)
      from = seat_.from_group + (seat_.is_right ? j : tree_.run_length() - 1);
    builder_.receive(shared(j) - 1, rank(sender(from)), block(j));
    if (at_ + 1 < ranks_) builder_.send(shared(j), rank(at_ + 1), block(j), 1);
  }

  void add_sender(std::uint32_t j) {
    if (couple_ == 0) {
      builder_.send(shared(j), rank(1), block(j), 0);
    } else {
      builder_.receive(shared(j), rank(at_ - 1), block(j));
    }
    if (seat_.down == 0) return;
    builder_.send(2 * (next() + j), rank(receiver(seat_.down)), block(j), couple_ == 0 ? 0 : 1);
  }

  Builder& builder_;
  const FractionalTree& tree_;
  std::uint32_t ranks_, root_;
  std::uint32_t at_;  // distance from the root in ranks
  std::uint32_t couple_;
  FractionalTree::Seat seat_;
};

}  // namespace

Status fractional_simplex_broadcast(const CollectiveParameters& parameters, std::uint32_t me,
                                    Program& out) {
  Builder builder(out);
  const Status status = builder.begin(parameters, me,
                                      {.collective = Collective::kBroadcast,
                                       .algorithm = "fractional-simplex",
                                       .port_model = PortModel::kSimplex});
  if (status != Status::kOk) return status;
  const std::uint32_t run_length = fractional_run_length(parameters);
  if (run_length > kMaxSimplexRunLength) {
    out.clear();
    return Status::kTooLarge;
  }
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  if (p == 2) {
    const bool source = me == parameters.root;
    if (source) {
      builder.send(0, 1 - me, builder.input(0), 0);
    } else {
      builder.receive(0, 1 - me, builder.output(0));
    }
    builder.phase(1, 0, 1);
    return builder.finish_one_port();
  }
  const FractionalTree tree((p + 1) / 2, run_length);
  Couple(builder, tree, parameters, me).add();
  builder.phase(2 * tree.period(), steps_of(tree, p));
  return builder.finish_one_port();
}

}  // namespace espalier

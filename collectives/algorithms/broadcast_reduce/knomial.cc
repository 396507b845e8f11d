// Broadcast and reduce by a tree over intervals of ranks (interval_tree.h), with any radix k:
// binomial for k = 2. One block of any length.
//
// Steps: with S = L = 1, (k-1) * floor(log_k(p-1)) plus 1 to k-1; ceil(log2 p) for k = 2, which is
// optimal. Cost: steps * (alpha + beta*m). Folklore. A larger radix is faster in the postal model
// with L > S, where a division takes (k-2)S + L ticks (the optimum is lambda_tree.cc), and with
// several ports, where the k-1 sends of a division go out at once.
//
// A broadcast counts the ranks from the root onward, cyclically. A reduce is a broadcast reversed
// in time, over the ranks as they are numbered: a rank combines neighbouring intervals only, so the
// operator need not commute, whatever the root is. On a mesh, no two messages of a step of either
// share a link (interval_tree.h). kTooLarge if a program has no room for a rank's
// transfers: more than 62 sends of a broadcast, or 32 receives of a reduce.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/interval_tree.h"
#include "collectives/algorithms/trees/postal.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

// In the tree, a rank has the number of ranks that it comes after the root.
void add_tree_broadcast(Builder& builder, const CollectiveParameters& parameters,
                        const IntervalTree& tree, const Given& given) {
  const auto rank = [&](std::uint32_t number) {
    return (parameters.root + number) % parameters.ranks;
  };
  const std::uint32_t arrival = given.root ? 0 : given.tick + parameters.latency_ticks - 1;
  const Operand from = given.root ? builder.input(0) : builder.output(0);
  if (!given.root) builder.receive(arrival, rank(given.from), from);
  tree.for_each_part(given, [&](const Interval& part, std::uint32_t tick) {
    builder.send(tick, rank(part.leader), from, given.root ? 0 : tick - arrival);
  });
}

// The receives of a reduce in the order of the ticks, which reverses the sends of the broadcast.
// Receive j is into scratch slot j mod slots. The root's sum is in OUTPUT, the sum of another rank
// in the slot of its last receive.
class TreeReduce {
 public:
  TreeReduce(Builder& builder, const CollectiveParameters& parameters, const IntervalTree& tree,
             const Given& given)
      : builder_(builder),
        tree_(tree),
        given_(given),
        last_(tree.steps() - 1),
        latency_ticks_(parameters.latency_ticks),
        sum_(builder.input(0)) {
    tree.for_each_part(given, [this](const Interval&, std::uint32_t) { ++parts_; });
    // Receives are at least S ticks apart. A slot is free for the next one a window after its last
    // use, which is at the root the receive's own step, elsewhere the step of the next receive.
    const std::uint32_t window =
        parameters.window > parameters.latency_ticks ? parameters.window : parameters.latency_ticks;
    const std::uint32_t send = parameters.send_ticks;
    const std::uint32_t enough = (window + send - 1) / send + (given.root ? 0 : 1);
    slots_ = parts_ < enough ? parts_ : enough;
    (void)builder.scratch(slots_);
  }

  void add() {
    for (std::uint32_t receive = 0; receive < parts_; ++receive) add_receive(receive);
    if (given_.root) return;
    const std::uint32_t step = last_ + 1 - latency_ticks_ - given_.tick;
    builder_.send(step, given_.from, sum_, parts_ == 0 ? 0 : step - combined_);
  }

 private:
  void add_receive(std::uint32_t receive) {
    std::uint32_t turn = parts_ - receive;
    tree_.for_each_part(given_, [&](const Interval& part, std::uint32_t tick) {
      if (--turn == 0) add_transfer(receive, part, last_ - tick);
    });
  }

  void add_transfer(std::uint32_t receive, const Interval& part, std::uint32_t step) {
    const Operand slot = builder_.slot(0, {receive % slots_, 1});
    const Operand into = given_.root ? builder_.output(0) : slot;
    const bool before = part.first < given_.interval.leader;
    builder_.receive(step, part.leader, slot);
    builder_.combine(step, into, before ? slot : sum_, before ? sum_ : slot);
    sum_ = into;
    combined_ = step;
  }

  Builder& builder_;
  const IntervalTree& tree_;
  const Given& given_;
  std::uint32_t last_, latency_ticks_;
  std::uint32_t parts_ = 0, slots_ = 0;
  Operand sum_;
  std::uint32_t combined_ = 0;  // the step of the last combine
};

Status tree_of_radix(const CollectiveParameters& parameters, std::uint32_t me,
                     Collective collective, const char* algorithm, Program& out) {
  const std::uint32_t send = parameters.send_ticks, latency = parameters.latency_ticks;
  Builder builder(out);
  const Status status = builder.begin(parameters, me,
                                      {.collective = collective,
                                       .algorithm = algorithm,
                                       .one_block = true,
                                       .send_ticks = send,
                                       .latency_ticks = latency});
  if (status != Status::kOk) return status;
  const std::uint32_t p = parameters.ranks;
  if (p == 1) return builder.finish_alone();
  const std::uint32_t radix = tree_radix(parameters.radix, p, send, latency);
  const bool reduces = collective == Collective::kReduce;
  const IntervalTree tree(p, reduces ? parameters.root : 0, radix, send, latency,
                          Leaders::kNearest);
  if (reduces) {
    TreeReduce(builder, parameters, tree, tree.given_to(me)).add();
  } else {
    add_tree_broadcast(builder, parameters, tree, tree.given_to((me + p - parameters.root) % p));
  }
  builder.phase(send, static_cast<std::int32_t>(tree.steps()), 0);
  return builder.finish(static_cast<std::int32_t>(postal_ticks(p, send, latency)), 0);
}

Status binomial_reduce(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                       Program& out) {
  return tree_of_radix(binomial_parameters(parameters), me, Collective::kReduce, "binomial", out);
}

Status generate_knomial(const CollectiveParameters& parameters, std::uint32_t me,
                        Collective collective, Program& out) {
  return tree_of_radix(parameters, me, collective, "knomial", out);
}

}  // namespace

const Algorithm kKnomialRows[] = {
    row("knomial", Collective::kBroadcast, generate_knomial,
        "one block down a k-nomial tree, --radix k: ceil(log_k p) divisions of k-1 steps, or "
        "(k-2)S+L ticks",
        {.takes_lambda = true, .takes_radix = true}),
    row("binomial", Collective::kReduce, binomial_reduce,
        "one block up a binomial tree, ordered: ceil(log2 p) steps"),
    row("knomial", Collective::kReduce, generate_knomial,
        "one block up a k-nomial tree, --radix k: ceil(log_k p) divisions of k-1 steps, or "
        "(k-2)S+L ticks",
        {.takes_lambda = true, .takes_radix = true}),
};

}  // namespace espalier

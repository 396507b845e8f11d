// Broadcast and reduce by a fractional tree: a pipeline with nearly the bandwidth of a chain and
// the latency of a tree ([Sanders03], section 3, Figs. 1 and 2; the tree itself:
// fractional_tree.h).
//
// Steps: d + N + ceil(N/r) - 1 with runs of r blocks, d = min{i : P_i >= p} - 1. (The paper's (7)
// gives at most d + N(1 + 1/r) for r | N; simulation shows one step less.) N steps for p = 2: no
// rank sends to the right, so there is no pause. Cost: steps * (alpha + beta*m/N). The minimum is
// at N = sqrt(beta*m*d*r / (alpha*(r+1))):
// beta*m*(1 + 1/r)*(1 + sqrt(d*r*alpha / (beta*m*(r+1))))^2. r is `run_length`, or
// chosen from p (fractional_run_length); tests/papers/cost finds the best r. kTooLarge: r
// above kMaxRunLength, in a reduce above kMaxReduceRunLength.
//
// A rank whose first block arrives in step A gets block j of run m in step A + j + (r+1)m. In a
// program this is one action per j with one instance per run: 2r+1 actions (3r+2 in a reduce). A
// reduce is the broadcast reversed in time, blocks included: its block j is block r-1-j of the
// broadcast. A block from the right waits until the down successor's sum of the same block has
// arrived, and is combined last. Ranks therefore stay in order, and to root 0 or p-1 operators need
// not be commutative.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/fractional_tree.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

// Block j of every run.
struct BlockOfRun {
  Builder& builder;
  std::uint32_t run_length;

  [[nodiscard]] std::uint8_t index(std::uint32_t j) const {
    Index row{};
    row.base = static_cast<std::int32_t>(j);
    row.coef = static_cast<std::int32_t>(run_length);
    return builder.index(row);
  }
  [[nodiscard]] Operand of(Operand operand, std::uint32_t j) const {
    operand.block_ref = index(j);
    return operand;
  }
};

void add_broadcast(Builder& builder, const FractionalTree& tree, const TreeOrder& order,
                   std::uint32_t virtual_rank) {
  const FractionalTree::Seat seat = tree.seat(virtual_rank);
  const std::uint32_t run_length = tree.run_length();
  const BlockOfRun block{builder, run_length};
  const bool source = virtual_rank == 0;
  const auto next = static_cast<std::uint32_t>(seat.arrival + 1);
  const Operand data = source ? builder.input(0) : builder.output(0);
  for (std::uint32_t j = 0; j < run_length; ++j) {
    const Operand operand = block.of(data, j);
    if (!source) {
      const bool is_head = seat.position == 0;
      const std::uint32_t from =
          is_head ? seat.from_group + (seat.is_right ? j : run_length - 1) : virtual_rank - 1;
      builder.receive(next - 1 + j, order.rank(from), operand);
    }
    if (seat.down != 0) builder.send(next + j, order.rank(seat.down), operand, source ? 0 : 1);
  }
  if (seat.right != 0) {
    const std::uint32_t wait = run_length + 1 - seat.position;
    builder.send(next + run_length, order.rank(seat.right), block.of(data, seat.position),
                 source ? 0 : wait);
  }
}

// The sums of a rank's blocks, stored slot after slot: block b is in slot b mod slots.
class Sums {
 public:
  // A sum is last read `lifetime` steps after it was received. Block b + slots arrives at least
  // slots + floor(slots/r) steps (without pauses: slots) after block b.
  Sums(Builder& builder, const FractionalTree& tree, std::uint32_t window, std::uint32_t lifetime)
      : builder_(builder), run_length_(tree.run_length()) {
    const bool pauses = tree.period() > run_length_;
    while (slots_ + (pauses ? slots_ / run_length_ : 0) < lifetime + window) ++slots_;
    first_ = builder.scratch(slots_);
  }
  // The operand for block j of every run.
  [[nodiscard]] Operand of(std::uint32_t j) {
    Index row{};
    row.base = static_cast<std::int32_t>(first_ + j % slots_);
    if (run_length_ % slots_ != 0) {
      row.base = static_cast<std::int32_t>(first_);
      row.off = static_cast<std::int32_t>(j % slots_);
      row.coef = static_cast<std::int32_t>(run_length_ % slots_);
      row.mod = slots_;
    }
    Operand operand = Builder::operand(Buffer::kScratch, builder_.constant(0));
    operand.slot_ref = builder_.index(row);
    return operand;
  }

 private:
  Builder& builder_;
  std::uint32_t run_length_;
  std::uint32_t slots_ = 1, first_ = 0;
};

void add_reduce(Builder& builder, const FractionalTree& tree, const TreeOrder& order,
                std::uint32_t virtual_rank, std::uint32_t window) {
  const FractionalTree::Seat seat = tree.seat(virtual_rank);
  const std::uint32_t run_length = tree.run_length();
  const BlockOfRun block{builder, run_length};
  const bool sink = virtual_rank == 0;
  const auto add = [&](std::uint32_t step, const Operand& into, const Operand& near,
                       const Operand& far) -> Action& {
    return builder.combine(step, into, order.descends ? far : near, order.descends ? near : far);
  };
  // The step in which block 0 is sent (for the sink: would be sent).
  const auto send = static_cast<std::uint32_t>(tree.last_arrival() - seat.arrival);
  const std::uint32_t of_right =
      run_length - 1 - seat.position;  // the block of a run that it forwards
  Operand right{};
  if (seat.right != 0) {
    // From its receive to the down successor's receive.
    const std::uint32_t wait = run_length - seat.position;
    right = block.of(builder.slot(0, builder.ring(wait, tree.period())), of_right);
    builder.receive(send + of_right - 1 - wait, order.rank(seat.right), right);
  }
  const auto send_up = [&](std::uint32_t j, const Operand& from, std::uint32_t after) {
    const std::uint32_t i = run_length - 1 - j;  // the corresponding block of the broadcast
    const std::uint32_t up = seat.position > 0
                                 ? virtual_rank - 1
                                 : seat.from_group + (seat.is_right ? i : run_length - 1);
    builder.send(send + j, order.rank(up), from, after);
  };
  if (seat.down == 0) {
    for (std::uint32_t j = 0; j < run_length; ++j) send_up(j, block.of(builder.input(0), j), 0);
    return;
  }
  Sums sums(builder, tree, window, sink ? 0 : 1);
  for (std::uint32_t j = 0; j < run_length; ++j) {
    const std::uint32_t step = send + j - 1;
    const Operand slot = block.of(sums.of(j), j);
    const Operand sum = sink ? block.of(builder.output(0), j) : slot;
    builder.receive(step, order.rank(seat.down), slot);
    add(step, sum, block.of(builder.input(0), j), slot);
    if (seat.right != 0 && j == of_right) {
      add(step, sum, sum, right).after = static_cast<std::uint16_t>(run_length - seat.position);
    }
    if (!sink) send_up(j, sum, 1);
  }
}

Status generate_fractional(const CollectiveParameters& parameters, std::uint32_t me,
                           Collective collective, Program& out) {
  const std::uint32_t p = parameters.ranks;
  const bool reduces = collective == Collective::kReduce;
  const bool to_last = reduces && parameters.root != 0 && parameters.root + 1 == p;
  Builder builder(out);
  const Status status =
      builder.begin(parameters, me,
                    {.collective = collective,
                     .algorithm = "fractional",
                     .needs_commutative = reduces && parameters.root != 0 && !to_last});
  if (status != Status::kOk) return status;
  const std::uint32_t run_length = fractional_run_length(parameters);
  if (run_length > (reduces ? kMaxReduceRunLength : kMaxRunLength))
    return builder.refuse(Status::kTooLarge);
  if (p == 1) return builder.finish_alone();
  const FractionalTree tree(p, run_length);
  const TreeOrder order{p, parameters.root, to_last};
  if (reduces) {
    add_reduce(builder, tree, order, order.virtual_rank(me), parameters.window);
  } else {
    add_broadcast(builder, tree, order, order.virtual_rank(me));
  }
  builder.phase(tree.period(), tree.steps());
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kFractionalRows[] = {
    row("fractional", Collective::kBroadcast, generate_fractional,
        "a pipelined fractional tree, --run-length r: d+N+ceil(N/r)-1 steps, d about r*log2(p/r)",
        {.max_run_length = kMaxRunLength}),
    row("fractional", Collective::kReduce, generate_fractional,
        "a pipelined fractional tree, --run-length r: d+N+ceil(N/r)-1 steps, d about r*log2(p/r)",
        {.needs_commutative = true, .max_run_length = kMaxReduceRunLength}),
};

}  // namespace espalier

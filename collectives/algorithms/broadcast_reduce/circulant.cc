// Broadcast and reduce on circulant graphs, in the fewest steps possible for any number of ranks
// ([Traff22], [Traff24]).
//
// Steps: N - 1 + q with q = ceil(log2 p), which is optimal. Cost: steps * (alpha + beta*m/N). The
// minimum is at N = sqrt((q-1)*beta*m/alpha): beta*m + (q-1)*alpha + 2*sqrt((q-1)*alpha*beta*m).
// N is rounded up to N = 1 (mod q), so that round 0 of the schedule is step 0 for every N.
//
// schedule.h has the schedule of round i: in round k of window i/q a rank moves block
// sched[k] + q * (i/q), no block if that is negative, and block N-1 if it is above N-1. With N = 1
// (mod q), only the last window has blocks above N-1, and there a rank receives block N-1 once. So
// this block is the exception: its messages are single instances, and all others repeat every q
// steps.
//   * Broadcast: block N-1 is stored as block 0, every other block s as block s + 1. Block 0
//     travels in the last q steps, from step N - 1 onward.
//   * Reduce: the broadcast reversed in time (step t becomes N - 2 + q - t), and block s is stored
//     as block N-1-s. Block 0 travels in the first q steps. The operator must commute.
//
// kTooLarge, on every rank: a broadcast beyond kMaxBroadcastRounds, a reduce beyond
// kMaxReduceRounds, whose actions do not fit a program.

#include "collectives/algorithms/circulant/schedule.h"
#include "collectives/algorithms/rows.h"
#include "collectives/build/builder.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxBroadcastRounds = 20, kMaxReduceRounds = 12;

// The blocks that a rank sends (or receives) in one round of the window: block + q*i in step
// step + q*i, i = 0, 1, ..., with 1 <= block <= q; and block 0 once, if `last` (it is the last
// block of the broadcast that [Traff24] describes).
struct RoundBlocks {
  std::uint32_t block, step;
  bool last;
};

class CirculantRank {
 public:
  CirculantRank(Builder& builder, const CollectiveParameters& parameters, std::uint32_t me)
      : builder_(builder),
        schedule_(parameters.ranks),
        p_(parameters.ranks),
        q_(schedule_.rounds()),
        root_(parameters.root),
        place_((me + parameters.ranks - parameters.root) % parameters.ranks) {
    if (place_ != 0) schedule_.receives(place_, receives_);
    schedule_.sends(place_, sends_);
  }

  void add_broadcast();
  void add_reduce(std::uint32_t window);

 private:
  // The partial sum of the blocks of one residue modulo q, or of block 0, at this rank.
  struct Sum {
    bool has_children = false;
    std::uint32_t first = 0, last = 0;  // steps in which the first and the last child sends to it
    std::uint32_t sent = 0;             // step in which it is sent on
    Operand operand;
  };

  [[nodiscard]] bool is_source() const { return place_ == 0; }
  // The ranks at the distance of round k, in the direction of a broadcast's sends and against it.
  [[nodiscard]] std::uint32_t rank_after(std::uint32_t k) const {
    return (root_ + place_ + schedule_.skip(k)) % p_;
  }
  [[nodiscard]] std::uint32_t rank_before(std::uint32_t k) const {
    return (root_ + place_ + p_ - schedule_.skip(k)) % p_;
  }
  // Whether this rank sends in round k of a broadcast. The root needs nothing.
  [[nodiscard]] bool has_child(std::uint32_t k) const { return rank_after(k) != root_; }

  [[nodiscard]] RoundBlocks in_broadcast(std::uint32_t k, std::int32_t block) const {
    const std::uint32_t window = block < 0 ? q_ : 0;
    return {static_cast<std::uint32_t>(block + 1) + window, k + window, block >= 0};
  }
  [[nodiscard]] RoundBlocks in_reduce(std::uint32_t k, std::int32_t block) const {
    const std::uint32_t window = block < 0 ? 0 : q_;
    return {window - static_cast<std::uint32_t>(block), step_of_last(k) + window, block >= 0};
  }
  // The step of a reduce in which block 0 is sent in round k.
  [[nodiscard]] std::uint32_t step_of_last(std::uint32_t k) const { return q_ - 1 - k; }

  // Set the blocks of an operand, or the instances of an action.
  Operand repeated(Operand operand, std::uint32_t block);
  Operand only(Operand operand);
  void repeat(Action& action);
  void once(Action& action);

  // Returns the number of children that send block 0.
  std::uint32_t note_children(Sum (&sums)[CirculantSchedule::kMaxRounds + 1]);
  void place_sum(Sum& sum, std::uint32_t block);
  void add_child(const Sum& sum, std::uint32_t step, std::uint32_t from, bool is_last,
                 const Operand& landing);

  Builder& builder_;
  CirculantSchedule schedule_;
  std::uint32_t p_, q_, root_;
  std::uint32_t place_;  // distance from the root, in rank order
  CirculantSchedule::Blocks receives_ = {}, sends_ = {};
};

// Each table row is added in a statement of its own: the compiler must not choose their order.
Operand CirculantRank::repeated(Operand operand, std::uint32_t block) {
  Index row{};
  row.base = static_cast<std::int32_t>(block);
  row.coef = static_cast<std::int32_t>(q_);
  operand.block_ref = builder_.index(row);
  return operand;
}

Operand CirculantRank::only(Operand operand) {
  operand.block_ref = builder_.constant(0);
  return operand;
}

// ceil((N - 1) / q) blocks.
void CirculantRank::repeat(Action& action) {
  action.instances_ref = builder_.count({.a = 0, .b = 0, .c = 1, .d = -1, .e = q_});
}

void CirculantRank::once(Action& action) { action.instances_ref = builder_.count(1, 0); }

void CirculantRank::add_broadcast() {
  const Operand data = is_source() ? builder_.input(0) : builder_.output(0);
  const auto in_last_window = [this](Action& action, std::uint32_t k) {
    once(action);
    action.t0_ref = builder_.count(static_cast<std::int32_t>(k) - 1, 1);
  };
  std::uint32_t arrival[CirculantSchedule::kMaxRounds + 1] = {};  // by block
  for (std::uint32_t k = 0; k < q_ && !is_source(); ++k) {
    const RoundBlocks round = in_broadcast(k, receives_[k]);
    arrival[round.block] = round.step;
    repeat(builder_.receive(round.step, rank_before(k), repeated(data, round.block)));
    if (!round.last) continue;
    arrival[0] = k;
    in_last_window(builder_.receive(0, rank_before(k), only(data)), k);
  }
  for (std::uint32_t k = 0; k < q_; ++k) {
    if (!has_child(k)) continue;
    const RoundBlocks round = in_broadcast(k, sends_[k]);
    repeat(builder_.send(round.step, rank_after(k), repeated(data, round.block),
                         is_source() ? 0 : round.step - arrival[round.block]));
    if (!round.last) continue;
    in_last_window(builder_.send(0, rank_after(k), only(data), is_source() ? 0 : k - arrival[0]),
                   k);
  }
  builder_.phase(q_, static_cast<std::int32_t>(q_) - 1, 1);
}

std::uint32_t CirculantRank::note_children(Sum (&sums)[CirculantSchedule::kMaxRounds + 1]) {
  std::uint32_t children = 0;
  const auto note = [](Sum& sum, std::uint32_t step) {
    if (!sum.has_children || step < sum.first) sum.first = step;
    if (!sum.has_children || step > sum.last) sum.last = step;
    sum.has_children = true;
  };
  for (std::uint32_t k = 0; k < q_; ++k) {
    if (!is_source()) {
      const RoundBlocks sent = in_reduce(k, receives_[k]);
      sums[sent.block].sent = sent.step;
      if (sent.last) sums[0].sent = step_of_last(k);
    }
    if (!has_child(k)) continue;
    const RoundBlocks received = in_reduce(k, sends_[k]);
    note(sums[received.block], received.step);
    if (!received.last) continue;
    note(sums[0], step_of_last(k));
    ++children;
  }
  return children;
}

// Sets the operand of a sum: the result at the root, the input without children.
void CirculantRank::place_sum(Sum& sum, std::uint32_t block) {
  if (!sum.has_children) {
    sum.operand = builder_.input(0);
  } else if (is_source()) {
    sum.operand = builder_.output(0);
  } else if (block == 0) {
    sum.operand = builder_.slot(0, {builder_.scratch(1), 1});
  } else {
    sum.operand = builder_.slot(0, builder_.ring(sum.sent - sum.first, q_));
  }
  sum.operand = block == 0 ? only(sum.operand) : repeated(sum.operand, block);
}

// Adds what a child sends in `step` to a sum. The first child's data are received into the sum
// itself, except at the root.
void CirculantRank::add_child(const Sum& sum, std::uint32_t step, std::uint32_t from, bool is_last,
                              const Operand& landing) {
  const bool first = step == sum.first;
  Operand received = first && !is_source() ? sum.operand : landing;
  received.block_ref = sum.operand.block_ref;
  Operand before = first ? builder_.input(0) : sum.operand;
  before.block_ref = sum.operand.block_ref;
  Action& receive = builder_.receive(step, from, received);
  is_last ? once(receive) : repeat(receive);
  Action& combine = builder_.combine(step, sum.operand, before, received);
  is_last ? once(combine) : repeat(combine);
}

void CirculantRank::add_reduce(std::uint32_t window) {
  Sum sums[CirculantSchedule::kMaxRounds + 1] = {};  // by block
  const std::uint32_t children = note_children(sums);
  for (std::uint32_t block = 0; block <= q_; ++block) place_sum(sums[block], block);
  // The first child sends block 0 to the sum itself, except at the root. One child sends it per
  // step, so a slot is free again `window` children later.
  const std::uint32_t landings = is_source() || children == 0 ? children : children - 1;
  const std::uint32_t first_slot = builder_.scratch(landings < window ? landings : window);
  std::uint32_t child = 0;
  for (std::uint32_t k = q_; k-- > 0;) {
    if (!has_child(k)) continue;
    const RoundBlocks round = in_reduce(k, sends_[k]);
    const bool lands = is_source() || round.step != sums[round.block].first;
    const Operand landing = lands ? builder_.slot(0, builder_.ring(0, q_)) : Operand{};
    add_child(sums[round.block], round.step, rank_after(k), false, landing);
    if (!round.last) continue;
    const bool to_sum = !is_source() && step_of_last(k) == sums[0].first;
    const Operand slot = to_sum ? Operand{} : builder_.slot(0, {first_slot + child++ % window, 1});
    add_child(sums[0], step_of_last(k), rank_after(k), true, slot);
  }
  for (std::uint32_t k = 0; k < q_ && !is_source(); ++k) {
    const RoundBlocks round = in_reduce(k, receives_[k]);
    const auto add_send = [&](const Sum& sum, bool is_last) {
      Action& send = builder_.send(sum.sent, rank_before(k), sum.operand,
                                   sum.has_children ? sum.sent - sum.last : 0);
      is_last ? once(send) : repeat(send);
    };
    add_send(sums[round.block], false);
    if (round.last) add_send(sums[0], true);
  }
  builder_.phase(q_, static_cast<std::int32_t>(q_) - 1, 1);
}

Status generate_circulant_tree(const CollectiveParameters& parameters, std::uint32_t me,
                               Collective collective, Program& out) {
  const bool reduces = collective == Collective::kReduce;
  const std::uint32_t rounds = log2_ceil(parameters.ranks);
  const bool cut = rounds > 1;  // otherwise any N
  Builder builder(out);
  const Status status = builder.begin(parameters, me,
                                      {.collective = collective,
                                       .algorithm = "circulant",
                                       .needs_commutative = reduces && parameters.ranks > 1,
                                       .residue_mod = cut ? rounds : 0,
                                       .residue = cut ? 1u : 0u});
  if (status != Status::kOk) return status;
  if (rounds > (reduces ? kMaxReduceRounds : kMaxBroadcastRounds)) {
    return builder.refuse(Status::kTooLarge);
  }
  if (parameters.ranks == 1) return builder.finish_alone();
  CirculantRank rank(builder, parameters, me);
  reduces ? rank.add_reduce(out.window) : rank.add_broadcast();
  return builder.finish_one_port();
}

}  // namespace

const Algorithm kCirculantTreeRows[] = {
    row("circulant", Collective::kBroadcast, generate_circulant_tree,
        "circulant graph, N = 1 mod ceil(log2 p): ceil(log2 p)+N-1 steps, p <= 2^20"),
    row("circulant", Collective::kReduce, generate_circulant_tree,
        "circulant graph, N = 1 mod ceil(log2 p): ceil(log2 p)+N-1 steps, p <= 2^12",
        {.needs_commutative = true}),
};

}  // namespace espalier

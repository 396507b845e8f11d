// Allgather (multinode broadcast) on a fat tree, over one lane of every branch, without any queue.
//
// Let routers of level l have k_l children, and K_l = k_1 ... k_l; [DD96] has equal k_l = k.
// Steps: N(n-1) + 1; for k_1 = 2 < n it is N*n + 1. Cost: steps * (alpha + beta*m/N), where m is
// the bytes of one rank's part. For N = 1 no schedule is faster, with or without queues ([DD96],
// theorem 7: a leaf receives n - 1 messages over one link, and every other leaf is at least two
// steps away). The paper's own schedule without queues takes 2h - 2 steps more; this one is new.
// Further lanes stay unused. The claimed bound counts them, so for N = 1 it is met only if all
// branches have one lane.
//
// The blocks that arrive at the leaves in one step have turned in routers of one level L. A round
// has n - 1 steps (k_1 = 2: n steps, one of them idle). In it, (k_L - 1) K_(L-1) consecutive
// arrivals are of level L, the lower levels first. Leaves send their own block in every wave, one
// per step, as often as needed. From wave w of a round, a router of level l passes up the block of
// branch floor((w+1) / K_(l-1)) mod k_l. So a branch of the turning router delivers leaf (w+1) mod
// K_(L-1), whose number in mixed radix has those branches as digits, and each leaf k_L - 1 times in
// the waves that turn there. The router gives wave j of branch u to branch u + 1 + floor(j /
// K_(L-1)); below, routers replicate it at once. A message is forwarded in the step after it
// arrived, and no link carries two messages in one step. Every round repeats the first one.
//
// Instances. If all waves that turn at one level pass through a node, they are numbered without
// gaps, (k_L - 1) K_(L-1) per round. If waves of several levels pass, they have n numbers per
// round, some of which do not exist. Both are multiples of the digits' periods, so the digits do
// not depend on the round. Actions: at most 3 + (h-1)(k_l + 1) per router, h + 2 per rank.
// kTooLarge for h > 6 (k = 2: h > 10), and if a router's actions or links do not fit.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/leaf_tree.h"
#include "collectives/build/rounds.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier {
namespace {

class Flood {
 public:
  Flood(Builder& builder, const LeafNode& node);

  void add_rank();
  void add_router();
  [[nodiscard]] Status finish(const CollectiveParameters& parameters);

 private:
  // The numbering of an action's instances from round to round.
  struct Numbers {
    std::uint8_t instances, block, pace;
    Term back = {};  // added to i: (step - number) * `wide`
    bool has_back = false;
  };

  [[nodiscard]] Count bound(const CollectiveParameters& parameters) const;
  // The first wave of a round that turns at `level`, and the number of such waves.
  [[nodiscard]] std::uint32_t first_wave(std::uint32_t level) const {
    return leaves_below(node_, level - 1) + 1 + (late_ && level > 1 ? 1 : 0) - 2 * level;
  }
  [[nodiscard]] std::uint32_t waves(std::uint32_t level) const {
    return leaves_below(node_, level) - leaves_below(node_, level - 1);
  }
  // The number of waves of a round that reach routers of `level`, from first_wave(level) onward.
  [[nodiscard]] std::uint32_t rising(std::uint32_t level) const {
    return first_wave(node_.height) + waves(node_.height) - first_wave(level);
  }

  // `count` waves per round, `wide` messages each: numbered without gaps.
  [[nodiscard]] Numbers dense(std::uint32_t count, std::uint32_t wide);
  // The same, with n waves per round.
  [[nodiscard]] Numbers sparse(std::uint32_t count, std::uint32_t wide);
  [[nodiscard]] std::uint8_t pace(const Numbers& numbers, std::uint32_t wide);
  // The slot as a function of the step: base + (off + wide * step) mod slots.
  [[nodiscard]] std::uint8_t slot(const Ring& ring, std::uint32_t off, const Numbers& numbers);
  static void number(Action& action, const Numbers& numbers) {
    action.instances_ref = numbers.instances;
    action.pace_ref = numbers.pace;
  }

  void add_streams();
  void add_up();
  void add_down(std::uint32_t level);
  // The origin of the blocks that branch `branch` of router `index` of `level` gets in the waves
  // that turn there.
  [[nodiscard]] std::uint8_t origins(std::uint32_t level, std::uint32_t index,
                                     std::uint32_t branch);

  Builder& builder_;
  const LeafNode& node_;
  bool late_;             // k_1 = 2 < n: no block arrives in the third step of a round
  std::uint32_t period_;  // steps per round
  Ring streams_, down_;   // of all branches, one after the other in a step; and from the parent
};

Flood::Flood(Builder& builder, const LeafNode& node)
    : builder_(builder),
      node_(node),
      late_(node.arity(1) == 2 && node.height > 1),
      period_(late_ ? node.ranks : node.ranks - 1) {}

std::uint8_t Flood::pace(const Numbers& numbers, std::uint32_t wide) {
  Index row{};
  row.coef = 1;
  row.div = wide > 1 ? wide : 0;
  if (!numbers.has_back && wide == 1) return 0;
  return builder_.index(row, &numbers.back, numbers.has_back ? 1 : 0);
}

Flood::Numbers Flood::dense(std::uint32_t count, std::uint32_t wide) {
  const std::uint32_t length = count * wide;
  Numbers numbers{};
  numbers.instances = builder_.count(0, as_int(length));
  Index block{};
  block.coef = 1;
  block.div = length > 1 ? length : 0;
  numbers.block = builder_.index(block);
  numbers.has_back = count != period_;
  numbers.back = floor_term(as_int((period_ - count) * wide), 0, length);
  numbers.pace = pace(numbers, wide);
  return numbers;
}

Flood::Numbers Flood::sparse(std::uint32_t count, std::uint32_t wide) {
  Rounds rounds(builder_, node_.ranks * wide);
  Numbers numbers{};
  numbers.instances = rounds.instances(count * wide);
  numbers.block = rounds.block(count * wide);
  numbers.has_back = node_.ranks != period_;
  numbers.back = rounds.round(-as_int((node_.ranks - period_) * wide));
  if (numbers.has_back && wide == 1) {  // i - floor(i / n), without a term
    Index row{};
    row.coef = row.off = as_int(period_);
    row.div = node_.ranks;
    numbers.pace = builder_.index(row);
  } else {
    numbers.pace = pace(numbers, wide);
  }
  return numbers;
}

std::uint8_t Flood::slot(const Ring& ring, std::uint32_t off, const Numbers& numbers) {
  Index row{};
  row.base = as_int(ring.first);
  row.coef = 1;
  row.off = as_int(off % ring.slots);
  row.mod = ring.slots;
  return builder_.index(row, &numbers.back, numbers.has_back ? 1 : 0);
}

// Adds the blocks that rise from the branches, and the turn. Instance i is branch i mod k in wave
// floor(i / k).
void Flood::add_streams() {
  const std::uint32_t k = node_.children(), below = node_.leaves / k;
  const std::uint32_t wave = first_wave(node_.level);
  const std::uint32_t step = wave + node_.level - 1;
  Index branch{}, turn{}, origin{};
  branch.coef = turn.coef = 1;
  branch.mod = turn.mod = k;
  turn.off = 1;
  origin.base = as_int(node_.index * node_.leaves);
  origin.coef = as_int(below);
  origin.mod = node_.leaves;
  const Term leaf = floor_term(1, as_int((wave + 1) * k), k, below);
  const Term turned = floor_term(1, 0, k * below, k - 1);
  Operand operand = Builder::operand(Buffer::kScratch, builder_.index(origin, &leaf, below > 1));
  const Numbers risen = sparse(rising(node_.level), k);
  operand.block_ref = risen.block;
  operand.slot_ref = slot(streams_, 0, risen);
  number(builder_.receive_by(step, builder_.index(branch), operand), risen);
  const Numbers turning = dense(waves(node_.level), k);
  operand.block_ref = turning.block;
  operand.slot_ref = slot(streams_, 0, turning);
  // With 2 branches there is only one other branch.
  const std::uint8_t to = builder_.index(turn, &turned, k > 2);
  number(builder_.send_by(step + 1, to, operand, 1), turning);
}

void Flood::add_up() {
  const std::uint32_t k = node_.children();
  const std::uint32_t wave = first_wave(node_.level + 1);
  const Numbers rising_on = sparse(rising(node_.level + 1), 1);
  Index origin{}, slot{};
  origin.base = as_int(node_.index * node_.leaves);
  origin.coef = 1;
  origin.off = as_int(wave + 1);
  origin.mod = node_.leaves;
  slot.base = as_int(streams_.first);
  slot.coef = as_int(k);
  slot.off = as_int((wave - first_wave(node_.level)) * k);
  slot.mod = streams_.slots;
  Term back = rising_on.back;
  back.coef *= as_int(k);
  const Term branch = floor_term(1, as_int(wave + 1), node_.leaves / k, k);
  Operand operand = Builder::operand(Buffer::kScratch, builder_.index(origin));
  operand.block_ref = rising_on.block;
  operand.slot_ref =
      rising_on.has_back ? builder_.index(slot, {back, branch}) : builder_.index(slot, {branch});
  number(builder_.send_by(wave + node_.level, builder_.constant(node_.parent_link()), operand, 1),
         rising_on);
}

std::uint8_t Flood::origins(std::uint32_t level, std::uint32_t index, std::uint32_t branch) {
  const std::uint32_t k = node_.arity(level), below = leaves_below(node_, level - 1);
  const std::uint32_t leaves = below * k;
  Index row{};
  row.base = as_int(index * leaves);
  row.off = as_int((branch + k - 1) % k * below);
  row.mod = leaves;
  Term terms[2];
  std::uint32_t count = 0;
  if (k > 2) terms[count++] = floor_term(-as_int(below), 0, below, k - 1);
  if (below > 1) terms[count++] = floor_term(1, as_int(first_wave(level) + 1), 0, below);
  return builder_.index(row, terms, count);
}

// Adds the blocks that turn at `level` above and come down to this node.
void Flood::add_down(std::uint32_t level) {
  const std::uint32_t step = first_wave(level) + 2 * level - node_.level - 1;
  const std::uint32_t below = leaves_below(node_, level - 1);
  const std::uint32_t leaves = below * node_.arity(level);
  const std::uint32_t first = node_.index * node_.leaves;  // of the ranks of this node
  const std::uint8_t origin = origins(level, first / leaves, first / below % node_.arity(level));
  const Numbers turning = dense(waves(level), 1);
  Operand operand = Builder::operand(Buffer::kOutput, origin);
  operand.block_ref = turning.block;
  if (node_.level == 0) {
    number(builder_.receive_by(step, builder_.constant(0), operand), turning);
    return;
  }
  operand.buffer = Buffer::kScratch;
  operand.slot_ref = slot(down_, step, turning);  // by the step: one block arrives per step
  number(builder_.receive_by(step, builder_.constant(node_.parent_link()), operand), turning);
  for (std::uint32_t branch = 0; branch < node_.children(); ++branch) {
    number(builder_.send_by(step + 1, builder_.constant(branch), operand, 1), turning);
  }
}

void Flood::add_rank() {
  Operand own = builder_.input(node_.index), into = builder_.output(node_.index);
  const Numbers once = dense(1, 1);
  own.block_ref = into.block_ref = once.block;
  number(builder_.copy(0, into, own), once);
  const Numbers rising_on = dense(rising(1), 1);
  own.block_ref = rising_on.block;
  number(builder_.send_by(first_wave(1), builder_.constant(0), own, 0), rising_on);
  for (std::uint32_t level = 1; level <= node_.height; ++level) add_down(level);
}

void Flood::add_router() {
  streams_ = builder_.ring(1, 1);
  (void)builder_.scratch(streams_.slots * (node_.children() - 1));
  streams_.slots *= node_.children();
  add_streams();
  if (node_.level == node_.height) return;
  down_ = builder_.ring(1, 1);
  add_up();
  for (std::uint32_t level = node_.level + 1; level <= node_.height; ++level) add_down(level);
}

// A leaf receives the blocks of n - K_(i-1) leaves from a router of level i or above. The first of
// them arrives in step 2i, and each crosses branches of all levels up to i.
Count Flood::bound(const CollectiveParameters& parameters) const {
  std::uint32_t level = 1, lanes = branch_lanes(parameters, 1), blocks = node_.ranks - 1;
  std::uint32_t narrowest = lanes;
  for (std::uint32_t candidate = 2; candidate <= node_.height; ++candidate) {
    const std::uint32_t far = node_.ranks - leaves_below(node_, candidate - 1);
    narrowest = narrowest < branch_lanes(parameters, candidate)
                    ? narrowest
                    : branch_lanes(parameters, candidate);
    if (std::uint64_t{far} * lanes < std::uint64_t{blocks} * narrowest) continue;
    level = candidate;
    blocks = far;
    lanes = narrowest;
  }
  return steps_over_lanes(2 * level - 1, blocks, lanes);
}

Status Flood::finish(const CollectiveParameters& parameters) {
  const std::int32_t round = as_int(period_);
  builder_.phase(1, 1, round);
  return builder_.finish(bound(parameters));
}

Status leaf_allgather(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                      Program& out) {
  LeafNode node;
  Status status = find_leaf_node(parameters, me, node);
  if (status != Status::kOk) return status;
  Builder builder(out);
  status = builder.begin(parameters, me,
                         {.collective = Collective::kAllgather,
                          .algorithm = "leaf",
                          .nodes = leaf_tree_nodes(node),
                          .port_model = PortModel::kMultiport});
  if (status != Status::kOk) return status;
  add_leaf_links(builder, node);
  Flood flood(builder, node);
  node.level == 0 ? flood.add_rank() : flood.add_router();
  return flood.finish(parameters);
}

}  // namespace

const Algorithm kLeafAllgatherRows[] = {
    row("leaf", Collective::kAllgather, leaf_allgather,
        "multiport, without queues: (p-1)N+1 steps; pN+1 for k = 2 < p",
        {.where = Where::kFatTree}),
};

}  // namespace espalier

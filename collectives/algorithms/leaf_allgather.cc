// Allgather (multinode broadcast) on a fat tree, over one lane of every branch, without any queue.
//
// Steps: N(n-1) + 1; for k = 2 < n it is N*n + 1. Cost: steps * (alpha + beta*m/N), m the bytes of
// one rank's part. For N = 1 no schedule is faster, with queues or without (002 theorem 7: a leaf
// receives n - 1 messages over one link, and no other leaf is nearer than two steps). The paper's
// own schedule without queues takes 2h - 2 steps more; this one is new. Other lanes stay unused:
// the claimed bound counts them, so that for N = 1 it is met only where all branches have one lane.
//
// What arrives at the leaves in one step has turned in routers of one level L. In a round of n - 1
// steps (k = 2: n, one of them idle), (k-1) k^(L-1) arrivals in a row are of level L, the lower
// levels first. Leaves send their own block in every wave, one a step, as often as it is needed; of
// wave w a router of level l passes up what comes from branch floor((w+1) / k^(l-1)) mod k, so from
// a branch of the turning router comes leaf (w+1) mod k^(L-1), each k - 1 times in the waves that
// turn there. Of these, counted through all rounds, the router gives wave j of branch u to branch
// u + 1 + (floor(j / k^(L-1)) mod (k-1)); below, routers replicate it at once. A message is sent on
// in the step after it came, and no link carries two in one step.
// Actions: at most 3 + (h-1)(k+1) a router, h + 2 a rank. kTooLarge for h > 6 (k = 2: h > 8), and
// where a router's actions or links do not fit.

#include "collectives/algorithms/generators.h"
#include "collectives/algorithms/leaf_tree.h"
#include "collectives/algorithms/rounds.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxLevels = 32;

std::int32_t as_int(std::uint32_t value) { return static_cast<std::int32_t>(value); }

Term term(std::int32_t coef, std::uint32_t add, std::uint32_t div, std::uint32_t mod) {
  return {.coef = coef,
          .mul = 1,
          .add = as_int(add),
          .div = div,
          .mod = mod,
          .base = 0,
          .digits = 0,
          .table = 0};
}

class Flood {
 public:
  Flood(Builder& builder, const LeafNode& node);

  void add_rank();
  void add_router();
  [[nodiscard]] Status finish(const Group& group);

 private:
  [[nodiscard]] Count bound(const Group& group) const;
  // The first wave of a round that turns at `level`, and how many do.
  [[nodiscard]] std::uint32_t first_wave(std::uint32_t level) const {
    return leaves_below(node_, level - 1) + 1 + (late_ && level > 1 ? 1 : 0) - 2 * level;
  }
  [[nodiscard]] std::uint32_t waves(std::uint32_t level) const {
    return leaves_below(node_, level) - leaves_below(node_, level - 1);
  }
  // Waves of a round that reach routers of `level`, from first_wave(level) on.
  [[nodiscard]] std::uint32_t rising(std::uint32_t level) const {
    return first_wave(node_.height) + waves(node_.height) - first_wave(level);
  }

  void add_streams();
  void add_up();
  void add_down(std::uint32_t level);
  // The origin of what branch `branch` of the router `index` of `level` gets in the waves that turn
  // there.
  [[nodiscard]] std::uint8_t origins(std::uint32_t level, std::uint32_t index,
                                     std::uint32_t branch);
  void add(Action& action) { action.instances_ref = instances_; }

  Builder& builder_;
  const LeafNode& node_;
  bool late_;  // k = 2 < n: the third step of a round has no arrivals
  Rounds rounds_;
  std::uint8_t instances_ = 0;
  Ring streams_, down_;  // of all branches, one after the other in a step; and from the parent
  // Blocks of the waves that turn at a level above this one, or that rise above it.
  std::uint8_t turning_[kMaxLevels] = {}, rising_on_ = 0;
};

Flood::Flood(Builder& builder, const LeafNode& node)
    : builder_(builder),
      node_(node),
      late_(node.arity == 2 && node.height > 1),
      rounds_(builder, late_ ? node.ranks : node.ranks - 1) {
  instances_ = rounds_.instances();
  for (std::uint32_t level = node.level + 1; level <= node.height; ++level) {
    turning_[level] = rounds_.block(waves(level));
  }
  if (node.level < node.height) rising_on_ = rounds_.block(rising(node.level + 1));
}

// What rises from the branches, and where it turns. Instance i is branch i mod k's in wave floor(i
// / k).
void Flood::add_streams() {
  const std::uint32_t k = node_.arity, below = node_.leaves / k;
  const std::uint32_t wave = first_wave(node_.level);
  Rounds rounds(builder_, rounds_.period() * k);
  Index branch{}, turn{}, pace{}, slot{}, origin{};
  branch.coef = turn.coef = pace.coef = slot.coef = 1;
  branch.mod = turn.mod = pace.div = k;
  turn.off = 1;
  slot.base = as_int(streams_.first);
  slot.mod = streams_.slots;
  origin.base = as_int(node_.index * node_.leaves);
  origin.coef = as_int(below);
  origin.mod = node_.leaves;
  const Term leaf = term(1, (wave + 1) * k, k, below);
  const Term turned = term(1, 0, k * below, k - 1);
  Place at = Builder::place(espalier_Buffer_SCRATCH, builder_.index(origin, &leaf, below > 1));
  at.slot_ref = builder_.index(slot);
  const std::uint8_t pace_ref = builder_.index(pace);
  const std::uint32_t step = wave + node_.level - 1;
  const auto add_paced = [&](Action& action, std::uint8_t instances) {
    action.instances_ref = instances;
    action.pace_ref = pace_ref;
  };
  at.block_ref = rounds.block(rising(node_.level) * k);
  const std::uint8_t risen = rounds.instances(rising(node_.level) * k);
  add_paced(builder_.receive_by(step, builder_.index(branch), at), risen);
  // With k = 2 there is only one other branch.
  at.block_ref = rounds.block(waves(node_.level) * k);
  const std::uint8_t turning = rounds.instances(waves(node_.level) * k);
  const std::uint8_t to = builder_.index(turn, &turned, k > 2);
  add_paced(builder_.send_by(step + 1, to, at, 1), turning);
}

void Flood::add_up() {
  const std::uint32_t k = node_.arity;
  const std::uint32_t wave = first_wave(node_.level + 1);
  Index origin{}, slot{};
  origin.base = as_int(node_.index * node_.leaves);
  origin.coef = 1;
  origin.off = as_int(wave + 1);
  origin.mod = node_.leaves;
  slot.base = as_int(streams_.first);
  slot.coef = as_int(k);
  slot.off = as_int((wave - first_wave(node_.level)) * k);
  slot.mod = streams_.slots;
  Place at = Builder::place(espalier_Buffer_SCRATCH, builder_.index(origin));
  at.block_ref = rising_on_;
  at.slot_ref = builder_.index(slot, {term(1, wave + 1, node_.leaves / k, k)});
  add(builder_.send_by(wave + node_.level, builder_.constant(k), at, 1));
}

std::uint8_t Flood::origins(std::uint32_t level, std::uint32_t index, std::uint32_t branch) {
  const std::uint32_t k = node_.arity, leaves = leaves_below(node_, level), below = leaves / k;
  Index row{};
  row.base = as_int(index * leaves);
  row.off = as_int((branch + k - 1) % k * below);
  row.mod = leaves;
  Term terms[2];
  std::uint32_t count = 0;
  if (k > 2) terms[count++] = term(-as_int(below), 0, below, k - 1);
  if (below > 1) terms[count++] = term(1, first_wave(level) + 1, 0, below);
  return builder_.index(row, terms, count);
}

// What turns at `level` above comes down to this node.
void Flood::add_down(std::uint32_t level) {
  const std::uint32_t step = first_wave(level) + 2 * level - node_.level - 1;
  const std::uint32_t leaves = leaves_below(node_, level), below = leaves / node_.arity;
  const std::uint32_t first = node_.index * node_.leaves;  // of this node's ranks
  const std::uint8_t origin = origins(level, first / leaves, first / below % node_.arity);
  Place at = Builder::place(espalier_Buffer_OUTPUT, origin);
  at.block_ref = turning_[level];
  if (node_.level == 0) {
    add(builder_.receive_by(step, builder_.constant(0), at));
    return;
  }
  Index slot{};
  slot.base = as_int(down_.first);
  slot.coef = 1;
  slot.off = as_int(step % down_.slots);  // by the step: one a step arrives
  slot.mod = down_.slots;
  at.buffer = espalier_Buffer_SCRATCH;
  at.slot_ref = builder_.index(slot);
  add(builder_.receive_by(step, builder_.constant(node_.arity), at));
  for (std::uint32_t branch = 0; branch < node_.arity; ++branch) {
    add(builder_.send_by(step + 1, builder_.constant(branch), at, 1));
  }
}

void Flood::add_rank() {
  Place own = builder_.input(node_.index), into = builder_.output(node_.index);
  own.block_ref = into.block_ref = rounds_.block(1);
  add(builder_.copy(0, into, own));
  own.block_ref = rising_on_;
  add(builder_.send_by(first_wave(1), builder_.constant(0), own, 0));
  for (std::uint32_t level = 1; level <= node_.height; ++level) add_down(level);
}

void Flood::add_router() {
  streams_ = builder_.ring(1, 1);
  streams_.slots *= node_.arity;
  (void)builder_.scratch(streams_.slots - streams_.slots / node_.arity);
  add_streams();
  if (node_.level == node_.height) return;
  down_ = builder_.ring(1, 1);
  add_up();
  for (std::uint32_t level = node_.level + 1; level <= node_.height; ++level) add_down(level);
}

// A leaf receives the blocks of n - k^(i-1) leaves from a router of level i or above. The first of
// them arrives in step 2i, and each crosses branches of all levels up to i.
Count Flood::bound(const Group& group) const {
  std::uint32_t level = 1, lanes = branch_lanes(group, 1), blocks = node_.ranks - 1;
  std::uint32_t narrowest = lanes;
  for (std::uint32_t at = 2; at <= node_.height; ++at) {
    const std::uint32_t far = node_.ranks - leaves_below(node_, at - 1);
    narrowest = narrowest < branch_lanes(group, at) ? narrowest : branch_lanes(group, at);
    if (std::uint64_t{far} * lanes < std::uint64_t{blocks} * narrowest) continue;
    level = at;
    blocks = far;
    lanes = narrowest;
  }
  return steps_over_lanes(2 * level - 1, blocks, lanes);
}

Status Flood::finish(const Group& group) {
  const std::int32_t round = as_int(rounds_.period());
  builder_.phase(1, 1, round);
  return builder_.finish(bound(group));
}

}  // namespace

Status leaf_allgather(const Group& group, std::uint32_t me, Program& out) {
  LeafNode node;
  Status status = find_leaf_node(group, me, node);
  if (status != Status::kOk) return status;
  Builder builder(out);
  status = builder.begin(group, me,
                         {.collective = espalier_Collective_ALLGATHER,
                          .algorithm = "leaf",
                          .nodes = leaf_tree_nodes(node),
                          .port_model = espalier_PortModel_MULTIPORT});
  if (status != Status::kOk) return status;
  add_leaf_links(builder, node);
  Flood flood(builder, node);
  node.level == 0 ? flood.add_rank() : flood.add_router();
  return flood.finish(group);
}

}  // namespace espalier

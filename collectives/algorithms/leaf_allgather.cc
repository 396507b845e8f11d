// Allgather (multinode broadcast) on a fat tree with one lane everywhere, without any queue.
//
// Steps: N(n-1) + 1; for k = 2 < n it is N*n + 1. Cost: steps * (alpha + beta*m/N), m the bytes of
// one rank's part. For N = 1 no schedule is faster, with queues or without (002 theorem 7: a leaf
// receives n - 1 messages over one link, and no other leaf is nearer than two steps). The paper's
// own schedule without queues takes 2h - 2 steps more; this one is new.
//
// What arrives at the leaves in one step has turned in routers of one level L. In a round of n - 1
// steps (k = 2: n, one of them idle), (k-1) k^(L-1) arrivals in a row are of level L, the lower
// levels first. Leaves send their own block in every wave, one a step, as often as it is needed; of
// wave w a router of level l passes up what comes from branch floor((w+1) / k^(l-1)) mod k, so from
// a branch of the turning router comes leaf (w+1) mod k^(L-1), each k - 1 times. The j-th time the
// router hands branch u's stream to branch u + j; below, routers replicate it at once. A message is
// sent on in the step after it came, and no link carries two in one step.
// Actions: at most 2k + 1 + (h-1)(k+1) a router, h + 2 a rank. Up to h = 5 (k = 2: h = 7) they fit
// the table of terms: kTooLarge beyond.

#include "collectives/algorithms/generators.h"
#include "collectives/algorithms/leaf_tree.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMaxLevels = 32;

class Flood {
 public:
  Flood(Builder& builder, const LeafNode& node);

  void add_rank();
  void add_router();
  [[nodiscard]] Status finish();

 private:
  [[nodiscard]] std::uint32_t late(std::uint32_t level) const { return late_ && level > 1 ? 1 : 0; }
  // The first wave of a round that turns at `level`, and how many do.
  [[nodiscard]] std::uint32_t first_wave(std::uint32_t level) const {
    return leaves_below(node_, level - 1) + 1 + late(level) - 2 * level;
  }
  [[nodiscard]] std::uint32_t waves(std::uint32_t level) const {
    return leaves_below(node_, level) - leaves_below(node_, level - 1);
  }
  // Waves of a round that reach routers of `level`, from first_wave(level) on.
  [[nodiscard]] std::uint32_t rising(std::uint32_t level) const {
    return first_wave(node_.height) + waves(node_.height) - first_wave(level);
  }

  // `coef` times how often branches were handed on before, in the waves that turn at `level`.
  [[nodiscard]] Term turns(std::uint32_t level, std::int32_t coef) const;
  // The origin of what branch `branch` of the router `index` of `level` gets in the waves that turn
  // there.
  [[nodiscard]] std::uint8_t origins(std::uint32_t level, std::uint32_t index,
                                     std::uint32_t branch);
  // Slot of the step's own number, from instance 0 on.
  [[nodiscard]] std::uint8_t slots(const Ring& ring, std::uint32_t step);
  void add_streams_up(std::uint32_t slots_first, std::uint32_t slots);
  void add_up(std::uint32_t slots_first, std::uint32_t slots);
  void add_turn(std::uint32_t slots_first, std::uint32_t slots);
  void add_down(std::uint32_t level);
  void add(Action& action) { action.instances_ref = instances_; }

  Builder& builder_;
  const LeafNode& node_;
  bool late_;  // k = 2 < n: the third step of a round has no arrivals
  LeafRounds rounds_;
  std::uint8_t instances_ = 0;
  Ring down_;
  // Blocks of the waves that turn at a level, that rise to this one, and above it.
  std::uint8_t turning_[kMaxLevels] = {}, rising_ = 0, rising_on_ = 0;
};

Flood::Flood(Builder& builder, const LeafNode& node)
    : builder_(builder), node_(node), late_(node.arity == 2 && node.height > 1) {
  rounds_.period = late_ ? node.ranks : node.ranks - 1;
  instances_ = rounds_.instances(builder);
  const bool leaf = node.level == 0;
  for (std::uint32_t level = leaf ? 1 : node.level; level <= node.height; ++level) {
    turning_[level] = rounds_.block(builder, waves(level));
  }
  if (!leaf) rising_ = rounds_.block(builder, rising(node.level));
  if (node.level < node.height) rising_on_ = rounds_.block(builder, rising(node.level + 1));
}

Term Flood::turns(std::uint32_t level, std::int32_t coef) const {
  // Message i of round b = floor(i / period) is i - period*b of the round; modulo n that is
  // i + (n - period) b = floor(i n / period).
  Term term{};
  term.coef = coef;
  term.mul = late_ ? 1 : static_cast<std::int32_t>(node_.ranks);
  term.div = leaves_below(node_, level - 1) * (late_ ? 1 : rounds_.period);
  term.mod = node_.arity;
  return term;
}

std::uint8_t Flood::origins(std::uint32_t level, std::uint32_t index, std::uint32_t branch) {
  const std::uint32_t leaves = leaves_below(node_, level), below = leaves / node_.arity;
  Index row{};
  row.base = static_cast<std::int32_t>(index * leaves);
  row.off = static_cast<std::int32_t>((branch + node_.arity - 1) % node_.arity * below);
  row.mod = leaves;
  Term terms[2];
  std::uint32_t count = 0;
  // With k = 2 each branch is handed on once a round.
  if (node_.arity > 2) terms[count++] = turns(level, -static_cast<std::int32_t>(below));
  if (below > 1) {
    terms[count++] = {.coef = 1,
                      .mul = 1,
                      .add = static_cast<std::int32_t>(first_wave(level) + 1),
                      .div = 0,
                      .mod = below,
                      .base = 0,
                      .digits = 0};
  }
  return builder_.index(row, terms, count);
}

std::uint8_t Flood::slots(const Ring& ring, std::uint32_t step) {
  Index row{};
  row.base = static_cast<std::int32_t>(ring.first);
  row.coef = 1;
  row.off = static_cast<std::int32_t>(step % ring.slots);
  row.mod = ring.slots;
  return builder_.index(row);
}

// Every branch's stream, in slots of its own.
void Flood::add_streams_up(std::uint32_t slots_first, std::uint32_t slots_each) {
  const std::uint32_t wave = first_wave(node_.level);
  const std::uint32_t below = node_.leaves / node_.arity;
  for (std::uint32_t branch = 0; branch < node_.arity; ++branch) {
    Index origin{};
    origin.base = static_cast<std::int32_t>(node_.index * node_.leaves + branch * below);
    origin.coef = 1;
    origin.off = static_cast<std::int32_t>(wave + 1);
    origin.mod = below;
    Place at = Builder::place(espalier_Buffer_SCRATCH, builder_.index(origin));
    at.block_ref = rising_;
    at.slot_ref = slots({slots_first + branch * slots_each, slots_each}, 0);
    add(builder_.receive_by(wave + node_.level - 1, builder_.constant(branch), at));
  }
}

void Flood::add_up(std::uint32_t slots_first, std::uint32_t slots_each) {
  const std::uint32_t wave = first_wave(node_.level + 1);
  Index origin{};
  origin.base = static_cast<std::int32_t>(node_.index * node_.leaves);
  origin.coef = 1;
  origin.off = static_cast<std::int32_t>(wave + 1);
  origin.mod = node_.leaves;
  Place at = Builder::place(espalier_Buffer_SCRATCH, builder_.index(origin));
  at.block_ref = rising_on_;
  Index slot{};
  slot.base = static_cast<std::int32_t>(slots_first);
  const auto each = static_cast<std::int32_t>(slots_each);
  const Term branch{.coef = each,
                    .mul = 1,
                    .add = static_cast<std::int32_t>(wave + 1),
                    .div = node_.leaves / node_.arity,
                    .mod = node_.arity,
                    .base = 0,
                    .digits = 0};
  const Term within{.coef = 1,
                    .mul = 1,
                    .add = static_cast<std::int32_t>(wave - first_wave(node_.level)),
                    .div = 0,
                    .mod = slots_each,
                    .base = 0,
                    .digits = 0};
  at.slot_ref = builder_.index(slot, {branch, within});
  add(builder_.send_by(wave + node_.level, builder_.constant(node_.arity), at, 1));
}

void Flood::add_turn(std::uint32_t slots_first, std::uint32_t slots_each) {
  const std::uint32_t step = first_wave(node_.level) + node_.level;
  const auto each = static_cast<std::int32_t>(slots_each);
  const Term within{
      .coef = 1, .mul = 1, .add = 0, .div = 0, .mod = slots_each, .base = 0, .digits = 0};
  for (std::uint32_t branch = 0; branch < node_.arity; ++branch) {
    Place at = Builder::place(espalier_Buffer_SCRATCH, origins(node_.level, node_.index, branch));
    at.block_ref = turning_[node_.level];
    const std::uint32_t before = (branch + node_.arity - 1) % node_.arity;
    if (node_.arity == 2) {
      at.slot_ref = slots({slots_first + before * slots_each, slots_each}, 0);
    } else {
      Index slot{};
      slot.base = static_cast<std::int32_t>(slots_first);
      slot.off = static_cast<std::int32_t>(before * slots_each);
      slot.mod = node_.arity * slots_each;
      at.slot_ref = builder_.index(slot, {turns(node_.level, -each), within});
    }
    add(builder_.send_by(step, builder_.constant(branch), at, 1));
  }
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
  at.buffer = espalier_Buffer_SCRATCH;
  at.slot_ref = slots(down_, step);
  add(builder_.receive_by(step, builder_.constant(node_.arity), at));
  for (std::uint32_t branch = 0; branch < node_.arity; ++branch) {
    add(builder_.send_by(step + 1, builder_.constant(branch), at, 1));
  }
}

void Flood::add_rank() {
  Place own = builder_.input(node_.index);
  builder_.copy(0, builder_.output(node_.index), own);  // block i in step i
  own.block_ref = rising_on_;
  add(builder_.send_by(first_wave(1), builder_.constant(0), own, 0));
  for (std::uint32_t level = 1; level <= node_.height; ++level) add_down(level);
}

void Flood::add_router() {
  const Ring one = builder_.ring(1, 1);
  (void)builder_.scratch((node_.arity - 1) * one.slots);
  add_streams_up(one.first, one.slots);
  if (node_.level < node_.height) {
    down_ = builder_.ring(1, 1);
    add_up(one.first, one.slots);
  }
  add_turn(one.first, one.slots);
  for (std::uint32_t level = node_.level + 1; level <= node_.height; ++level) add_down(level);
}

Status Flood::finish() {
  const auto round = static_cast<std::int32_t>(rounds_.period);
  builder_.phase(1, 1, round);
  return builder_.finish(1, static_cast<std::int32_t>(node_.ranks) - 1);
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
  return flood.finish();
}

}  // namespace espalier

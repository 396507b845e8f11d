// Scatter and gather between a leaf of a fat tree and all others; routers forward in the next step.
//
// Steps: N(n-1) + 1, and one more if k_1 = 2 < n, where routers of level i have k_i children (the
// routers of level 1 then lead to one other leaf, and the next ones are two steps further). Cost:
// steps * (alpha + beta*m/N), where m is the bytes of one rank's part. Source: [DD96] sections 2.2
// and 3.1, theorem 2 (optimal for N = 1: the root's link carries n - 1 messages, and every other
// leaf is at least two steps away).
//
// Furthest first: the root sends one block of every rank's part, one per step, in decreasing order
// of distance; then the next block of each part. All messages use one link at first and none waits,
// so no link is needed twice in one step. The (k_L - 1) K_(L-1) ranks that are reached through
// the router of level L, K_l = k_1 ... k_l, follow the root's own branch there, cyclically. A
// gather is the same reversed in time: nearest first. Actions: O(h) for the root and the routers
// above it, 1 for other ranks, 2 for other routers. kTooLarge if the terms do not fit: k = 2, h >
// 14.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/leaf_tree.h"
#include "collectives/build/rounds.h"

namespace espalier {
namespace {

// The exchange from the viewpoint of one node. A round of n - 1 steps is for one block. Instances
// of an action are counted from the first message of its level (or subtree) in round 0.
class Exchange {
 public:
  Exchange(Builder& builder, const LeafNode& node, std::uint32_t root, bool gather)
      : builder_(builder),
        node_(node),
        root_(root),
        gather_(gather),
        rounds_(builder, node.ranks - 1) {}

  void add_root();
  void add_rank();
  void add_router_above();
  void add_other_router();
  [[nodiscard]] Status finish();

 private:
  // Number of steps beyond N(n-1).
  [[nodiscard]] std::uint32_t rest() const {
    return node_.arity(1) == 2 && node_.height > 1 ? 2 : 1;
  }
  // Number of ranks whose path to the root turns at `level`.
  [[nodiscard]] std::uint32_t met(std::uint32_t level) const {
    return leaves_below(node_, level) - leaves_below(node_, level - 1);
  }
  // The branch of the root's router of `level` that contains the root.
  [[nodiscard]] std::uint32_t root_branch(std::uint32_t level) const {
    return root_ / leaves_below(node_, level - 1) % node_.arity(level);
  }

  // The step in which a node `hops` from the root receives the first message of `level` in round 0.
  // It forwards the message one step later.
  [[nodiscard]] std::uint32_t arrival(std::uint32_t level, std::uint32_t hops) const {
    if (gather_) return leaves_below(node_, level - 1) - 1 + rest() - hops;
    return node_.ranks - leaves_below(node_, level) + hops - 1;  // the root "receives" in step -1
  }
  // base + floor((off + m) / div) mod mod for message m of a round. Instance i is m = i - (n-1) b
  // of round b; i + b can be used instead, because div * mod divides n.
  [[nodiscard]] std::uint8_t index(std::uint32_t base, std::uint32_t off, std::uint32_t div,
                                   std::uint32_t mod);
  [[nodiscard]] std::uint8_t segments(std::uint32_t level);
  // Forwards messages between the link towards the root and a link away from it.
  void relay(std::uint32_t arrival, std::uint8_t near_link, std::uint8_t far_link, Operand operand,
             const Ring& ring);
  // The position of this node in the sequence of `level`: the number of messages before those of
  // its subtree.
  [[nodiscard]] std::uint32_t position(std::uint32_t level) const;

  Builder& builder_;
  const LeafNode& node_;
  std::uint32_t root_;
  bool gather_;
  Rounds rounds_;
};

std::uint8_t Exchange::index(std::uint32_t base, std::uint32_t off, std::uint32_t div,
                             std::uint32_t mod) {
  Index row{};
  row.base = static_cast<std::int32_t>(base);
  row.coef = 1;
  row.off = static_cast<std::int32_t>(off);
  row.div = div;
  row.mod = mod;
  return builder_.index(row, {rounds_.round(1)});
}

std::uint8_t Exchange::segments(std::uint32_t level) {
  const std::uint32_t leaves = leaves_below(node_, level);
  const std::uint32_t branch = leaves / node_.arity(level);
  return index(root_ / leaves * leaves, (root_branch(level) + 1) * branch, 0, leaves);
}

std::uint32_t Exchange::position(std::uint32_t level) const {
  const std::uint32_t leaves = leaves_below(node_, level);
  const std::uint32_t branch = leaves / node_.arity(level);
  const std::uint32_t mine = node_.index * node_.leaves % leaves;
  return (mine + leaves - (root_branch(level) + 1) * branch % leaves) % leaves;
}

void Exchange::relay(std::uint32_t arrival, std::uint8_t near_link, std::uint8_t far_link,
                     Operand operand, const Ring& ring) {
  Index slot{};
  slot.base = static_cast<std::int32_t>(ring.first);
  slot.coef = 1;
  // By the step: one message arrives per step.
  slot.off = static_cast<std::int32_t>(arrival % ring.slots);
  slot.mod = ring.slots;
  operand.slot_ref = builder_.index(slot);
  const std::uint8_t instances = rounds_.instances();
  builder_.receive_by(arrival, gather_ ? far_link : near_link, operand).instances_ref = instances;
  builder_.send_by(arrival + 1, gather_ ? near_link : far_link, operand, 1).instances_ref =
      instances;
}

void Exchange::add_root() {
  Operand own = builder_.input(root_), into = builder_.output(root_);
  own.block_ref = into.block_ref = rounds_.block(1);
  builder_.copy(0, into, own).instances_ref = rounds_.instances();
  for (std::uint32_t level = node_.height; level > 0; --level) {
    Operand operand = Builder::operand(gather_ ? Buffer::kOutput : Buffer::kInput, segments(level));
    operand.block_ref = rounds_.block(met(level));
    const std::uint8_t link = builder_.constant(0);
    const std::uint8_t instances = rounds_.instances();
    const std::uint32_t step = arrival(level, 0);
    Action& action = gather_ ? builder_.receive_by(step, link, operand)
                             : builder_.send_by(step + 1, link, operand, 0);
    action.instances_ref = instances;
  }
}

void Exchange::add_rank() {
  const std::uint32_t level = node_.meeting_level(root_);
  const std::uint32_t step = arrival(level, 2 * level) + position(level);
  const std::uint8_t link = builder_.constant(0);
  Operand own = gather_ ? builder_.input(node_.index) : builder_.output(node_.index);
  own.block_ref = rounds_.block(1);
  const std::uint8_t instances = rounds_.instances();
  Action& action =
      gather_ ? builder_.send_by(step + 1, link, own, 0) : builder_.receive_by(step, link, own);
  action.instances_ref = instances;
}

void Exchange::add_router_above() {
  const Ring ring = builder_.ring(1, 1);
  const std::uint32_t k = node_.children(), below = node_.leaves / k;
  const std::uint32_t branch = root_branch(node_.level);
  const std::uint8_t near = builder_.constant(branch);
  for (std::uint32_t level = node_.height; level >= node_.level; --level) {
    Operand operand = Builder::operand(Buffer::kScratch, segments(level));
    operand.block_ref = rounds_.block(met(level));
    const std::uint8_t far = level > node_.level ? builder_.constant(node_.parent_link())
                                                 : index(0, (branch + 1) * below, below, k);
    relay(arrival(level, node_.level), near, far, operand, ring);
  }
}

void Exchange::add_other_router() {
  const std::uint32_t level = node_.meeting_level(root_);
  const std::uint32_t hops = 2 * level - node_.level;
  Operand operand =
      Builder::operand(Buffer::kScratch, index(node_.index * node_.leaves, 0, 0, node_.leaves));
  operand.block_ref = rounds_.block(node_.leaves);
  const std::uint8_t far = index(0, 0, node_.leaves / node_.children(), node_.children());
  relay(arrival(level, hops) + position(level), builder_.constant(node_.parent_link()), far,
        operand, builder_.ring(1, 1));
}

Status Exchange::finish() {
  const auto round = static_cast<std::int32_t>(rounds_.period());
  builder_.phase(1, static_cast<std::int32_t>(rest()), round);
  return builder_.finish(1, round);
}

Status generate_leaf_scatter(const CollectiveParameters& parameters, std::uint32_t me,
                             Collective collective, Program& out) {
  const bool gather = collective == Collective::kGather;
  LeafNode node;
  Status status = find_leaf_node(parameters, me, node);
  if (status != Status::kOk) return status;
  Builder builder(out);
  status = builder.begin(
      parameters, me,
      {.collective = collective, .algorithm = "leaf", .nodes = leaf_tree_nodes(node)});
  if (status != Status::kOk) return status;
  add_leaf_links(builder, node);
  Exchange seen(builder, node, parameters.root, gather);
  if (node.level > 0) {
    node.holds(parameters.root) ? seen.add_router_above() : seen.add_other_router();
  } else {
    me == parameters.root ? seen.add_root() : seen.add_rank();
  }
  return seen.finish();
}

}  // namespace

const Algorithm kLeafScatterRows[] = {
    row("leaf", Collective::kScatter, generate_leaf_scatter,
        "furthest first: (p-1)N+1 steps, one more for k = 2 < p", {.where = Where::kFatTree}),
    row("leaf", Collective::kGather, generate_leaf_scatter,
        "nearest first: (p-1)N+1 steps, one more for k = 2 < p", {.where = Where::kFatTree}),
};

}  // namespace espalier

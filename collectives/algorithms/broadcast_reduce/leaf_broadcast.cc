// Broadcast from a leaf of a fat tree; routers replicate.
//
// `leaf`: every node sends to one neighbour per step: first to its parent, then to its children in
// turn, but not back to the sender. Steps: (k+1)h - 1 + k(N-1). Cost: steps * (alpha + beta*m/N).
// Source: [DD96] section 2.1, theorem 1 (optimal for one block); pipelined here: a router is busy
// for k steps per block. If level i has k_i children: h - 1 + k_1 + ... + k_h + P(N-1) steps, where
// P = max(k_1, ..., k_(h-1), k_h - 1) are the sends per block of the busiest router; the root
// router never sends back. The paper's proof holds as it is: from the root router down a block
// takes k_1 + ... + k_(h-1) steps more after the last of k_h - 1 sends, and every router on the way
// up serves its parent first. For h = 1, P is k. `leaf-multiport`: every node sends to all
// neighbours in the step after it received. Steps: 2h + N - 1, where 2h is the distance to the
// furthest leaf. Source: [DD96] section 3.1. Actions: at most k_i + 1 per router, 1 per rank.

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/leaf_tree.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier {
namespace {

// The step in which a node that is not above the root receives block 0 with a single port. The path
// goes from the router where it leaves the root's own path, down branch after branch.
std::uint32_t turn_arrival(const LeafNode& node, std::uint32_t root) {
  const std::uint32_t meeting = node.meeting_level(root);
  std::uint32_t index = node.index, step = meeting;
  for (std::uint32_t level = node.level + 1; level < meeting; ++level) {
    step += 1 + index % node.arity(level);
    index /= node.arity(level);
  }
  const std::uint32_t branch = index % node.arity(meeting);
  const std::uint32_t from = root / leaves_below(node, meeting - 1) % node.arity(meeting);
  const std::uint32_t parent_first = meeting < node.height ? 1 : 0;
  return step + parent_first + branch - (branch > from ? 1 : 0);
}

// The sends per block of the busiest router. The root router does not send to the branch that a
// block came from.
std::uint32_t busiest_router(const LeafNode& node) {
  std::uint32_t sends = node.arity(node.height) - 1;
  for (std::uint32_t level = 1; level < node.height; ++level) {
    if (sends < node.arity(level)) sends = node.arity(level);
  }
  return sends;
}

// The steps per block of a single port.
std::uint32_t broadcast_period(const LeafNode& node) {
  return node.height == 1 ? node.arity(1) : busiest_router(node);
}

void add_router(Builder& builder, const LeafNode& node, std::uint32_t root, std::uint32_t arrival,
                bool multiport) {
  const std::uint32_t k = node.children(), parent = node.parent_link();
  const bool rising = node.holds(root);
  const std::uint32_t from = rising ? root / (node.leaves / k) % k : parent;
  const std::uint32_t links = k + (node.level < node.height ? 1 : 0);
  const std::uint32_t sends = links - 1;
  const Ring ring = multiport ? builder.ring(1, 1) : builder.ring(sends, broadcast_period(node));
  const Operand slot = builder.slot(0, ring);
  builder.receive_by(arrival, builder.constant(from), slot);
  std::uint32_t after = 1;
  const auto send_to = [&](std::uint32_t link) {
    builder.send_by(arrival + after, builder.constant(link), slot, after);
    if (!multiport) ++after;
  };
  if (rising && node.level < node.height) send_to(parent);
  for (std::uint32_t branch = 0; branch < k; ++branch) {
    if (branch != from) send_to(branch);
  }
}

template <bool kMultiport>
Status leaf_broadcast(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                      Program& out) {
  LeafNode node;
  Status status = find_leaf_node(parameters, me, node);
  if (status != Status::kOk) return status;
  Builder builder(out);
  status =
      builder.begin(parameters, me,
                    {.collective = Collective::kBroadcast,
                     .algorithm = kMultiport ? "leaf-multiport" : "leaf",
                     .nodes = leaf_tree_nodes(node),
                     .port_model = kMultiport ? PortModel::kMultiport : PortModel::kSingleSend});
  if (status != Status::kOk) return status;
  add_leaf_links(builder, node);
  const std::uint32_t meeting = node.meeting_level(parameters.root);
  const bool rising = meeting == node.level;
  std::uint32_t arrival = 2 * meeting - node.level - 1;
  if (!rising && !kMultiport) arrival = turn_arrival(node, parameters.root);
  if (me == parameters.root) {
    builder.send_by(0, builder.constant(0), builder.input(0), 0);
  } else if (node.level == 0) {
    builder.receive_by(arrival, builder.constant(0), builder.output(0));
  } else {
    add_router(builder, node, parameters.root, arrival, kMultiport);
  }
  const auto h = static_cast<std::int32_t>(node.height);
  // Bounds. The furthest leaf is 2h hops away, over branches of all levels. A router of level l
  // below the root sends k_l messages per block, the root router k_h - 1, none before block 0 can
  // have arrived; a leaf is l hops away from it.
  if (kMultiport) {
    std::uint32_t lanes = branch_lanes(parameters, 1);
    for (std::uint32_t level = 2; level <= node.height; ++level) {
      lanes = lanes < branch_lanes(parameters, level) ? lanes : branch_lanes(parameters, level);
    }
    builder.phase(1, 2 * h - 1, 1);
    return builder.finish(steps_over_lanes(2 * node.height - 1, 1, lanes));
  }
  const std::uint32_t period = broadcast_period(node);
  std::uint32_t first = node.height - 1;  // and the sends of the routers on the longest way
  for (std::uint32_t level = 1; level <= node.height; ++level) first += node.arity(level);
  builder.phase(period, as_int(first) - as_int(period), as_int(period));
  return builder.finish(2 * h - 1, as_int(busiest_router(node)));
}

}  // namespace

const Algorithm kLeafBroadcastRows[] = {
    row("leaf", Collective::kBroadcast, leaf_broadcast<false>,
        "one send per node and step, parent first: (k+1)h-1 + k(N-1) steps",
        {.where = Where::kFatTree}),
    row("leaf-multiport", Collective::kBroadcast, leaf_broadcast<true>,
        "routers send to all at once: 2h+N-1 steps", {.where = Where::kFatTree}),
};

}  // namespace espalier

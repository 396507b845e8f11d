#include "collectives/algorithms/trees/leaf_tree.h"

#include "espalier/internal/base/assert.h"

namespace espalier {

std::uint32_t LeafNode::meeting_level(std::uint32_t rank) const {
  std::uint32_t meeting = level;
  std::uint32_t mine = index, other = rank / leaves;
  for (; mine != other; ++meeting) {
    mine /= arity(meeting + 1);
    other /= arity(meeting + 1);
  }
  return meeting;
}

std::uint32_t leaves_below(const LeafNode& node, std::uint32_t level) {
  std::uint32_t leaves = 1;
  for (std::uint32_t below = 1; below <= level; ++below) leaves *= node.arity(below);
  return leaves;
}

Status find_leaf_node(const CollectiveParameters& parameters, std::uint32_t me, LeafNode& node) {
  if (parameters.height < 1) return Status::kUnsupported;
  std::uint64_t ranks = 1;
  for (std::uint32_t level = 1; level <= parameters.height && ranks <= kMaxRanks; ++level) {
    const std::uint32_t arity = level_arity(parameters, level);
    if (arity < 2) return Status::kUnsupported;
    ranks *= arity;
  }
  if (ranks != parameters.ranks || ranks > kMaxRanks) return Status::kUnsupported;
  node = {};
  node.tree = &parameters;
  node.height = parameters.height;
  node.ranks = parameters.ranks;
  while (me - node.first >= node.ranks / node.leaves) {
    if (node.level == node.height) return Status::kBadArgument;
    node.first += node.ranks / node.leaves;
    ++node.level;
    node.leaves *= node.arity(node.level);
  }
  node.index = me - node.first;
  return Status::kOk;
}

std::uint32_t leaf_tree_nodes(const LeafNode& node) {
  std::uint32_t nodes = node.ranks, size = node.ranks;
  for (std::uint32_t level = 1; level <= node.height; ++level) {
    size /= node.arity(level);
    nodes += size;
  }
  return nodes;
}

std::uint32_t branch_lanes(const CollectiveParameters& parameters, std::uint32_t level) {
  ESPALIER_ASSERT(1 <= level && level <= parameters.height);
  return parameters.capacities == nullptr ? 1 : parameters.capacities[level - 1];
}

Count steps_over_lanes(std::uint32_t a, std::uint32_t blocks, std::uint32_t lanes) {
  ESPALIER_ASSERT(lanes >= 1);
  const std::uint32_t rest = blocks % lanes, lack = lanes - rest;
  Count count{};
  count.a = static_cast<std::int32_t>(a);
  count.b = static_cast<std::int32_t>(blocks / lanes);
  if (rest == 0) return count;
  if (rest <= lack) {
    // ceil(N rest / lanes) >= ceil(N / e), e = ceil(lanes / rest).
    count.c = 1;
    count.e = (lanes + rest - 1) / rest;
    return count;
  }
  // ... >= N - floor(N / e), e = floor(lanes / lack); floor(N / e) = ceil((N - e + 1) / e).
  count.e = lanes / lack;
  ++count.b;
  count.c = -1;
  count.d = 1 - static_cast<std::int32_t>(count.e);
  return count;
}

void add_leaf_links(Builder& builder, const LeafNode& node) {
  if (node.level > 0) {
    for (std::uint32_t branch = 0; branch < node.children(); ++branch) {
      (void)builder.link(node.child(branch));
    }
  }
  if (node.level < node.height) (void)builder.link(node.parent());
}

}  // namespace espalier

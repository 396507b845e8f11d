#include "collectives/algorithms/trees/leaf_tree.h"

#include "espalier/base/assert.h"

namespace espalier {

std::uint32_t LeafNode::meeting_level(std::uint32_t rank) const {
  std::uint32_t meeting = level;
  std::uint32_t mine = index, other = rank / leaves;
  for (; mine != other; ++meeting) {
    mine /= arity;
    other /= arity;
  }
  return meeting;
}

std::uint32_t leaves_below(const LeafNode& node, std::uint32_t level) {
  std::uint32_t leaves = 1;
  for (std::uint32_t i = 0; i < level; ++i) leaves *= node.arity;
  return leaves;
}

Status find_leaf_node(const CollectiveParameters& parameters, std::uint32_t me, LeafNode& node) {
  if (parameters.arity < 2 || parameters.height < 1) return Status::kUnsupported;
  std::uint64_t ranks = 1;
  for (std::uint32_t i = 0; i < parameters.height && ranks <= kMaxRanks; ++i)
    ranks *= parameters.arity;
  if (ranks != parameters.ranks || ranks > kMaxRanks) return Status::kUnsupported;
  node = {parameters.arity, parameters.height, parameters.ranks, 0, 0, 0, 1};
  while (me - node.first >= node.ranks / node.leaves) {
    if (node.level == node.height) return Status::kBadArgument;
    node.first += node.ranks / node.leaves;
    node.leaves *= node.arity;
    ++node.level;
  }
  node.index = me - node.first;
  return Status::kOk;
}

std::uint32_t leaf_tree_nodes(const LeafNode& node) {
  return (node.ranks - 1) / (node.arity - 1) + node.ranks;
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
    for (std::uint32_t branch = 0; branch < node.arity; ++branch) {
      (void)builder.link(node.child(branch));
    }
  }
  if (node.level < node.height) (void)builder.link(node.parent());
}

}  // namespace espalier
